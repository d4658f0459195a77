package plantillas_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
)

func TestPathsLeadThroughObjectsAndLists(t *testing.T) {
	t.Parallel()
	const data = `{"nombre": "Ana", "turno": {"hora": "10:00", "0": "cero"}, "items": ["a", {"n": "b"}, ["c"]], "año": 2026,
		"con-guion_y": "x", "si": true, "no": false, "n\u0303u": "marca"}`
	for path, want := range map[string]string{
		"nombre": "Ana", "turno.hora": "10:00", "turno.0": "cero", "items.0": "a", "items.1.n": "b", "items.2.0": "c",
		"año": "2026", "con-guion_y": "x", "si": "true", "no": "false", "n\u0303u": "marca",
	} {
		if got, err := pick(path, data); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	if got, err := pick("1", `["Ana", "Eva"]`); err != nil || got != "Eva" {
		t.Errorf("got %q, %v, want the second of a list", got, err)
	}
}

func TestPathsThatLeadNowhereAreAnError(t *testing.T) {
	t.Parallel()
	const data = `{"nombre": "Ana", "vacio": "", "blanco": " \t\u00a0", "nada": null, "turno": {"hora": "Ana"}, "items": ["Ana"], "n": 5}`
	for _, path := range []string{
		"falta", "Nombre", "turno.falta", "falta.hora", "nombre.0", "n.0", "nada.x", "items.1", "items.00", "items.-0", "items.-1",
		"items.hora", "items.18446744073709551616", "items.4294967296", "items.٠", "turno.0", "vacio", "blanco", "nada", "turno", "items",
	} {
		got, err := pick(path, data)
		if err == nil || got != "" {
			t.Errorf("%s: got %q, %v, want an error", path, got, err)
			continue
		}
		if !strings.Contains(err.Error(), `template "turno", parameter 1 (`+path+`)`) || strings.Contains(err.Error(), "Ana") {
			t.Errorf("%s: got %v, want the parameter's place and no data", path, err)
		}
	}
	for _, data := range []string{``, `{`, `[]`, `null`, `"nombre"`, `{"nombre": "Ana"} x`} {
		if got, err := pick("nombre", data); err == nil || strings.Contains(err.Error(), "Ana") {
			t.Errorf("%s: got %q, %v, want an error without data", data, got, err)
		}
	}
}

// The right column is what select '...'::jsonb shows, so that a number reads the same before and after it was stored.
func TestNumbersReadAsPostgresWritesThem(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0.0", "0.10": "0.10", "-7": "-7", "10.50": "10.50", "1000000": "1000000",
		"9223372036854775807": "9223372036854775807", "9223372036854775808": "9223372036854775808",
		"-12345678901234567890.0123456789012345678900": "-12345678901234567890.0123456789012345678900",
		"1e0": "1", "1e3": "1000", "1E+3": "1000", "1.5e3": "1500", "1.50e1": "15.0", "1.234e2": "123.4", "0.0012e2": "0.12",
		"1e-3": "0.001", "1.0e-2": "0.010", "-2.5e-3": "-0.0025", "0e5": "0", "0.00e1": "0.0", "-0e-2": "0.00",
		"123e-2": "1.23", "1e20": "100000000000000000000", "1e-7": "0.0000001",
	} {
		if got, err := pick("n", `{"n": `+literal+`}`); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", literal, got, err, want)
		}
		if got, err := renderText(t, "{{.n}}", `{"n": `+literal+`}`); err != nil || got != want {
			t.Errorf("%s in an email: got %q, %v, want %q", literal, got, err, want)
		}
	}
}

func TestNewParametersRefusesWhatIsNoPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", ".", "a.", ".a", "a..b", " a", "a b", "a\n", "$.a", "$", "items[0]", "items.*", "a/b", `a"b`, "{{.a}}", "a,b", "\xff",
	} {
		_, err := plantillas.NewParameters(map[string][]string{"otro": {"a"}, "turno": {"a", path}})
		if !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), `template "turno", entry 2: `) {
			t.Errorf("%q: got %v, want ErrInvalidOptions that names the entry", path, err)
		}
	}
}

func TestParametersKeepTheirOrderAndMayBeNone(t *testing.T) {
	t.Parallel()
	paths := map[string][]string{"turno": {"b", "a", "b"}, "aviso": nil}
	fromMap, err := plantillas.NewParameters(paths)
	if err != nil {
		t.Fatal(err)
	}
	paths["turno"][0] = "otro" // must not matter any more
	set := load(t, map[string]string{"turno.whatsapp.txt": "b\na\nb", "aviso.whatsapp.txt": "# ninguno\n"})
	for name, parameters := range map[string]func(transporte.Message) ([]string, error){"map": fromMap.Pick, "file": set.Parameters} {
		got, err := parameters(row(`{"a": "1", "b": 2}`))
		if err != nil || !slices.Equal(got, []string{"2", "1", "2"}) {
			t.Errorf("%s: got %q, %v, want 2 1 2", name, got, err)
		}
		got, err = parameters(transporte.Message{Template: "aviso"})
		if err != nil || len(got) != 0 {
			t.Errorf("%s: got %q, %v, want none", name, got, err)
		}
		if got, err := parameters(transporte.Message{Template: "otro"}); err == nil {
			t.Errorf("%s: got %q, want an error for an unknown template", name, got)
		}
	}
}

func TestParametersMayHaveNames(t *testing.T) {
	t.Parallel()
	fromMap, err := plantillas.NewParameters(map[string][]string{"turno": {"hora = turno.hora", "@idioma idioma", "nombre=nombre"}})
	if err != nil {
		t.Fatal(err)
	}
	set := load(t, map[string]string{
		"turno.whatsapp.txt": "# Hola {{nombre}}, a las {{hora}}\n  hora\t=  turno.hora \r\n@idioma idioma\nnombre=nombre\n",
		"otro.whatsapp.txt":  "nombre\n", "aviso.whatsapp.txt": "",
	})
	for name, opts := range map[string]transporte.WhatsAppOptions{"map": fromMap.Options(), "file": set.WhatsApp()} {
		m := row(`{"nombre": "Ana", "turno": {"hora": "10:00"}, "idioma": "es"}`)
		parameters, errParameters := opts.Parameters(m)
		names, errNames := opts.Names(m)
		language, errLanguage := opts.Language(m)
		if !slices.Equal(parameters, []string{"10:00", "Ana"}) || !slices.Equal(names, []string{"hora", "nombre"}) || language != "es" {
			t.Errorf("%s: got %q named %q in %q, want both with their names in es", name, parameters, names, language)
		}
		if err := errors.Join(errParameters, errNames, errLanguage); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		for _, m.Template = range []string{"otro", "aviso", "unknown"} {
			if names, err := opts.Names(m); len(names) != 0 || err != nil {
				t.Errorf("%s: got %q, %v for %s, want no names", name, names, err, m.Template)
			}
		}
	}
}

func TestNewParametersRefusesNamesThatMetaWouldRefuse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		entries []string
		want    string // after the template and the number of the last entry
	}{
		{[]string{"Hora = hora"}, "a parameter's name is letters a to z"},
		{[]string{"año = hora"}, "a parameter's name is letters a to z"},
		{[]string{"1 = hora"}, "a parameter's name is letters a to z"},
		{[]string{" = hora"}, "a parameter's name is letters a to z"},
		{[]string{"@idioma = hora", "hora"}, "a path is names"},
		{[]string{"hora = "}, "a path is names"},
		{[]string{"hora = a = b"}, "a path is names"},
		{[]string{"hora = a", "hora = b"}, "the name hora stands twice"},
		{[]string{"hora = a", "b"}, "either all parameters"},
		{[]string{"a", "@idioma x", "hora = b"}, "either all parameters"},
	} {
		_, err := plantillas.NewParameters(map[string][]string{"turno": test.entries})
		if !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), `template "turno", entry `) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want ErrInvalidOptions that names the entry and says that %s", test.entries, err, test.want)
		}
	}
}

func TestWhatsAppDiscardsWhatHasNoParameters(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"turno.whatsapp.txt": "nombre", "aviso.asunto.txt": "x", "aviso.txt": "x"})
	var got []string
	whatsapp, err := transporte.NewWhatsApp(
		func(context.Context, string) (string, bool, error) { return "", true, nil },
		func(_ context.Context, _ string, t transporte.Template) (string, error) {
			got = t.Parameters
			return "wamid.1", nil
		},
		set.WhatsApp())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []transporte.Message{
		row(`{}`), row(`{"nombre": ""}`), row(`{"nombre": null}`), row(`{"nombre": ["Ana"]}`), row(`{`), row(``),
		{Template: "aviso"}, {Template: "otro"}, {Template: "../turno"},
	} {
		m.Destination = "5491122334455"
		_, err := whatsapp.Send(t.Context(), m)
		wantRenderFault(t, err)
	}
	m := row(`{"nombre": "Ana"}`)
	m.Destination = "5491122334455"
	if id, err := whatsapp.Send(t.Context(), m); err != nil || id != "wamid.1" || !slices.Equal(got, []string{"Ana"}) {
		t.Errorf("got %q, %v and %q, want it sent with Ana", id, err, got)
	}
}

func TestAMessageSaysItsLanguageWhereItsTemplateSaysSo(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{
		"turno.whatsapp.txt": "# Hola {{1}}\n@idioma  cliente.idioma\nnombre\n", "otro.whatsapp.txt": "nombre\n",
	})
	for data, want := range map[string]string{
		`{"nombre": "Ana", "cliente": {"idioma": "pt_BR"}}`: "pt_BR", `{"nombre": "Ana", "cliente": {"idioma": " es "}}`: "es",
		`{"nombre": "Ana", "cliente": {"idioma": null}}`: "", `{"nombre": "Ana", "cliente": {"idioma": ""}}`: "",
	} {
		if got, err := set.Language(row(data)); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", data, got, err, want)
		}
		if got, err := set.Parameters(row(data)); err != nil || !slices.Equal(got, []string{"Ana"}) {
			t.Errorf("%s: got %q, %v, want the language to be no parameter", data, got, err)
		}
	}
	for _, data := range []string{`{}`, `{"cliente": "Ana"}`, `{"cliente": {"idioma": 5}}`, `{"cliente": {"idioma": ["Ana"]}}`, `{`} {
		if got, err := set.Language(row(data)); err == nil || got != "" || strings.Contains(err.Error(), "Ana") {
			t.Errorf("%s: got %q, %v, want an error without data", data, got, err)
		}
	}
	other := row(`{}`)
	for _, other.Template = range []string{"otro", "unknown"} {
		if got, err := set.Language(other); got != "" || err != nil {
			t.Errorf("%s: got %q, %v, want none", other.Template, got, err)
		}
	}
}

func TestALanguageStandsInOnePlace(t *testing.T) {
	t.Parallel()
	for _, paths := range [][]string{
		{"@idioma a", "@idioma b"}, {"@idioma"}, {"@idioma "}, {"@idioma a b"}, {"@lengua a"}, {"@idioma.a"},
	} {
		if _, err := plantillas.NewParameters(map[string][]string{"turno": paths}); !errors.Is(err, outbox.ErrInvalidOptions) {
			t.Errorf("%q: got %v, want ErrInvalidOptions", paths, err)
		}
	}
}
