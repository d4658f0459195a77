package plantillas_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
)

// folder gives a file system with these files.
func folder(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, source := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(source)}
	}
	return fsys
}

func load(t testing.TB, files map[string]string) *plantillas.Set {
	t.Helper()
	set, err := plantillas.Load(folder(files))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// row is a message of the template "turno".
func row(data string) transporte.Message {
	return transporte.Message{ID: "row-1", Template: "turno", Data: []byte(data)}
}

// renderText renders one text body.
func renderText(t testing.TB, body, data string) (string, error) {
	t.Helper()
	r, err := load(t, map[string]string{"turno.asunto.txt": "Turno", "turno.txt": body}).Email(row(data))
	return r.Text, err
}

func renderHTML(t testing.TB, body, data string) (string, error) {
	t.Helper()
	r, err := load(t, map[string]string{"turno.asunto.txt": "Turno", "turno.html": body}).Email(row(data))
	return r.HTML, err
}

// pick gives the one parameter at a path.
func pick(path, data string) (string, error) {
	p, err := plantillas.NewParameters(map[string][]string{"turno": {path}})
	if err != nil {
		return "", err
	}
	parameters, err := p.Pick(row(data))
	return strings.Join(parameters, ","), err
}

// wantRenderFault wants err to be what an adapter makes of a template that does not fit.
func wantRenderFault(t testing.TB, err error) {
	t.Helper()
	var failed *transporte.Error
	if !errors.As(err, &failed) || failed.Category != "plantilla" || failed.Code != "render" {
		t.Errorf("got %v, want plantilla/render", err)
	}
}
