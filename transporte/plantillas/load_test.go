package plantillas_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
)

func TestLoadNamesFileAndLineOfAFault(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, source string
		want               string // how the fault's line begins
	}{
		{"unclosed action", "turno.html", "<p>\n{{.nombre", "turno.html:2: unclosed action"},
		{"unclosed if", "turno.txt", "\n\n{{if .a}}\n", "turno.txt:4: unexpected EOF"},
		{"if that ends twice", "turno.txt", "{{if .a}}{{end}}\n{{end}}", "turno.txt:2: unexpected {{end}}"},
		{"unknown function", "turno.txt", "a\n{{upper .a}}", `turno.txt:2: function "upper" not defined`},
		{"printing with a format", "turno.txt", "a\n{{printf \"%d\" .a}}", `turno.txt:2: function "printf" not defined`},
		{"the strict functions by name", "turno.txt", "{{_texto .a}}", `turno.txt:1: function "_texto" not defined`},
		{"an escaper in HTML", "turno.html", "{{urlquery .a}}", `turno.html:1: function "urlquery" not defined`},
		{"unknown partial", "turno.html", "a\n{{template \"_pie.html\" .}}", `turno.html:2: there is no "_pie.html"`},
		{"a partial of the other kind", "turno.txt", "{{template \"turno.html\" .}}", `turno.txt:1: there is no "turno.html"`},
		{"open attribute", "turno.html", "<p>\n<a href=\"x\n", "turno.html:2: ends within a tag"},
		{"open script", "turno.html", "<p>\n<script>a", "turno.html:2: ends within a tag"},
		{"open attribute in a branch", "turno.html", "a\n{{if .a}}<a href=\"{{end}}x", "turno.html:2:5: {{if}} branches"},
		{"empty body", "turno.html", " \n", "turno.html:1: is empty"},
		{"two lines of subject", "turno.asunto.txt", "Hola\n{{.nombre}}", "turno.asunto.txt:1: a subject is one line"},
		{"a subject after a blank line", "turno.asunto.txt", "\nHola", "turno.asunto.txt:1: a subject is one line"},
		{"a break in one branch of a subject", "turno.asunto.txt", "{{if .a}}Hola\n{{end}}", "turno.asunto.txt:1: a subject is one line"},
		{"a break in a loop of a subject", "turno.asunto.txt", "{{range .a}}x{{else}}\r{{end}}", "turno.asunto.txt:1: a subject is one line"},
		{"no subject", "otro.html", "x", "otro.asunto.txt: is missing"},
		{"no body", "otro.asunto.txt", "x", "otro.html: is missing, and otro.txt too"},
		{"another encoding", "turno.txt", "Hola\nMa\xf1ana", "turno.txt:2: is not UTF-8"},
		{"another encoding of paths", "turno.whatsapp.txt", "a\xf1o", "turno.whatsapp.txt:1: is not UTF-8"},
		{"JSONPath", "turno.whatsapp.txt", "# quien\nnombre\n\n$.turno\n", "turno.whatsapp.txt:4: a path is names"},
		{"a name beside positions", "turno.whatsapp.txt", "nombre\n# {{hora}}\nhora = turno.hora", "turno.whatsapp.txt:3: either all"},
		{"a name of a parameter twice", "turno.whatsapp.txt", "hora = a\nhora = b", "turno.whatsapp.txt:2: the name hora stands twice"},
		{"a position as a name", "turno.whatsapp.txt", "1 = nombre", "turno.whatsapp.txt:1: a parameter's name is"},
		{"a name twice", "_pie.html", "x\n{{define \"turno.html\"}}y{{end}}", `turno.html:1: defines "turno.html", which another file`},
		{"unknown ending", "turno.htm", "x", "turno.htm: is not a template"},
		{"hidden and broken", ".turno.html", "{{", ""},
		{"a backup", "turno.html~", "x", "turno.html~: is not a template"},
		{"a space in a name", "mi turno.html", "x", "mi turno.html: is not a template"},
		{"an accent in a name", "mañana.html", "x", "mañana.html: is not a template"},
		{"subject of a partial", "_pie.asunto.txt", "x", "_pie.asunto.txt: is not a template"},
		{"a folder", "correo/turno.html", "x", "correo: is not a template"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"turno.asunto.txt": "Turno", "turno.html": "x"}
			files[test.file] = test.source
			_, err := plantillas.Load(folder(files))
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if !errors.Is(err, outbox.ErrInvalidOptions) {
				t.Fatalf("got %v, want ErrInvalidOptions", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[1], test.want) {
				t.Errorf("got %q, want one fault that begins with %q", lines, test.want)
			}
		})
	}
}

func TestLoadNamesAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		files map[string]string
		want  []string
	}{
		{
			map[string]string{"a.asunto.txt": "x", "a.html": "{{", "b.txt": "x", "c.doc": "x", "d.whatsapp.txt": "[0]\nok\n[1]"},
			[]string{"a.html:1: ", "b.asunto.txt: ", "c.doc: ", "d.whatsapp.txt:1: ", "d.whatsapp.txt:3: "},
		},
		{ // what only shows when all can be parsed
			map[string]string{"a.asunto.txt": "x", "a.html": "<a", "b.asunto.txt": "x", "b.html": "\n<p class='"},
			[]string{"a.html:1: ", "b.html:2: "},
		},
	} {
		_, err := plantillas.Load(folder(test.files))
		if err == nil {
			t.Fatal("got no error")
		}
		for _, fault := range test.want {
			if !strings.Contains(err.Error(), "\n"+fault) {
				t.Errorf("got %v, want a line for %q", err, fault)
			}
		}
	}
}

func TestLoadRefusesAFolderWithoutTemplates(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{"empty": {}, "hidden files": {".gitkeep": ""}, "partials": {"_pie.html": "x"}} {
		_, err := plantillas.Load(folder(files))
		if !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "has no templates") {
			t.Errorf("%s: got %v, want an error that there are none", name, err)
		}
	}
}

func TestLoadGivesTheErrorOfAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, missing := plantillas.Load(os.DirFS(filepath.Join(t.TempDir(), "missing")))
	if !errors.Is(missing, fs.ErrNotExist) || errors.Is(missing, outbox.ErrInvalidOptions) {
		t.Errorf("got %v, want that the folder does not exist", missing)
	}
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "turno.html")); err != nil {
		t.Fatal(err)
	}
	_, err := plantillas.Load(os.DirFS(dir))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, outbox.ErrInvalidOptions) {
		t.Errorf("got %v, want that the file does not exist", err)
	}
}

// A volume of Kubernetes has links to a folder that begins with two points.
func TestLoadReadsLinkedFilesAndLeavesHiddenOnesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"turno.asunto.txt", "turno.txt"} {
		if err := os.WriteFile(filepath.Join(dir, "..data", name), []byte("Hola"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".turno.html.swp"), []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := plantillas.Load(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Email(row(`{}`))
	if want := (transporte.Rendered{Subject: "Hola", Text: "Hola"}); err != nil || r != want {
		t.Errorf("got %+v, %v, want %+v", r, err, want)
	}
}

func TestLoadTakesWhatEditorsAddToFiles(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{
		"turno.asunto.txt":   "\ufeffTurno de {{template \"_club.txt\" .}}\r\n\r\n",
		"turno.html":         "\ufeff<p>hola</p>\r\n",
		"turno.whatsapp.txt": "\ufeffnombre\r\n\r\n  hora  \r\n# otro\r\n",
		"_club.txt":          "el club\n",
	})
	r, err := set.Email(row(`{}`))
	if want := (transporte.Rendered{Subject: "Turno de el club", HTML: "<p>hola</p>\r\n"}); err != nil || r != want {
		t.Errorf("got %+q, %v, want %+q", r, err, want)
	}
	parameters, err := set.Parameters(row(`{"nombre": "Ana", "hora": "10:00"}`))
	if err != nil || !slices.Equal(parameters, []string{"Ana", "10:00"}) {
		t.Errorf("got %q, %v, want both", parameters, err)
	}
}

// closing is a file system that fails the test when it is used after the start.
type closing struct {
	fstest.MapFS
	t      *testing.T
	closed bool
}

func (c *closing) Open(name string) (fs.File, error) {
	if c.closed {
		c.t.Errorf("%q was opened after the start", name)
	}
	return c.MapFS.Open(name)
}

func (c *closing) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(onlyOpen{c}, name) }

func (c *closing) ReadFile(name string) ([]byte, error) { return fs.ReadFile(onlyOpen{c}, name) }

type onlyOpen struct{ fs.FS }

func TestTheFolderIsNotReadAfterTheStart(t *testing.T) {
	t.Parallel()
	fsys := &closing{t: t, MapFS: fstest.MapFS{
		"turno.asunto.txt": {Data: []byte("Hola")}, "turno.txt": {Data: []byte("Hola")}, "turno.whatsapp.txt": {},
	}}
	set, err := plantillas.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	fsys.closed = true
	fsys.MapFS["turno.txt"].Data = []byte("{{")
	for _, name := range []string{"turno", "otro", "../turno", "turno.txt", ""} {
		m := transporte.Message{Template: name}
		_, err := set.Email(m)
		_, errParameters := set.Parameters(m)
		if known := name == "turno"; known != (err == nil) || known != (errParameters == nil) {
			t.Errorf("%q: got %v and %v, want only turno to be known", name, err, errParameters)
		}
	}
}
