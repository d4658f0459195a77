package plantillas_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestEmailEscapesInHTMLAndNotInText(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{
		"turno.asunto.txt": "Hola {{.nombre}}",
		"turno.html":       `<a href="https://club.example/?q={{.nombre}}">{{.nombre}}</a>`,
		"turno.txt":        "{{.nombre}}: https://club.example/?q={{urlquery .nombre}}",
	})
	got, err := set.Email(row(`{"nombre": "Ana & <Eva>"}`))
	want := transporte.Rendered{
		Subject: "Hola Ana & <Eva>",
		HTML:    `<a href="https://club.example/?q=Ana%20%26%20%3cEva%3e">Ana &amp; &lt;Eva&gt;</a>`,
		Text:    "Ana & <Eva>: https://club.example/?q=Ana+%26+%3CEva%3E",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// secret stands in the data of every row that must fail. No error may repeat it.
const secret = "Ana-ana@club.example"

func TestEmailFailsWhereDataDoesNotFitTheTemplate(t *testing.T) {
	t.Parallel()
	data := fmt.Sprintf(`{"nombre": %q, "nada": null, "turno": {"sala": %[1]q}, "items": [%[1]q], "n": 5, "precio": 10.50}`, secret)
	for _, body := range []string{
		"{{.falta}}", "{{.turno.falta}}", "{{.falta.sala}}", "{{.nombre.sala}}", "{{.items.sala}}", "{{.Nombre}}",
		"{{if .falta}}x{{end}}", "{{with .falta}}x{{end}}", "{{range .falta}}x{{end}}", "{{$.falta}}",
		"{{with .turno}}{{.falta}}{{end}}", "{{range .items}}{{.falta}}{{end}}", "{{$x := .turno}}{{$x.falta}}",
		`{{index . "falta"}}`, `{{index .turno "falta"}}`, `{{index . "falta" "sala"}}`, "{{index .items 1}}", "{{index .items .n}}",
		`{{if index . "falta"}}x{{end}}`, `{{with index .turno "falta"}}x{{end}}`, "{{index .items -1}}", "{{index .items 1.5}}",
		`{{index .items "0"}}`, "{{index .turno 0}}", "{{index .nombre 0}}", `{{index .nada "sala"}}`, `{{"falta" | index .}}`,
		"{{.nada}}", "{{.nada.sala}}", "{{and .nada .nombre}}", "{{or .nada .nada}}", "{{$x := .nada}}{{$x}}",
		"{{.}}", "{{.turno}}", "{{.items}}", "{{if .n}}{{.items}}{{else}}{{end}}", "{{with .items}}{{.}}{{end}}",
		`{{template "_nada" .nada}}`, `{{template "_nada" .turno}}`, `{{block "b" .items}}{{.}}{{end}}`,
		"{{range .n}}x{{end}}", "{{range .nombre}}x{{end}}", "{{range $i, $x := .n}}{{end}}", "{{range 3}}x{{end}}",
		"{{if eq .nombre .n}}x{{end}}", "{{if gt .precio 5}}x{{end}}", "{{if lt .nombre 5}}x{{end}}", "{{len .n}}", "{{len .nada}}",
	} {
		body := `{{define "_nada"}}{{.}}{{end}}` + body
		for kind, render := range map[string]func(testing.TB, string, string) (string, error){"text": renderText, "HTML": renderHTML} {
			got, err := render(t, body, data)
			if err == nil || got != "" {
				t.Errorf("%s in %s: got %q, %v, want an error", body, kind, got, err)
				continue
			}
			if strings.Contains(err.Error(), "Ana") || !strings.HasPrefix(err.Error(), "turno.") || !strings.Contains(err.Error(), ":1:") {
				t.Errorf("%s in %s: got %v, want the place in the file and no data", body, kind, err)
			}
		}
	}
}

func TestEmailRendersWhatDataHas(t *testing.T) {
	t.Parallel()
	const data = `{"nombre": "Ana", "apodo": null, "vacio": "", "si": true, "no": false, "turno": {"sala": "B", "año": 2026},
		"items": ["a", 2, {"n": "c"}], "ninguno": [], "uno": 1, "cero": 0, "con-guion": "x", "precio": 10.50, "largo": 12345678901234567890,
		"cien": 1e2, "chico": -2.5e-3, "millon": 1000000}`
	for _, test := range []struct{ body, want string }{
		{"{{.nombre}} {{.turno.sala}} {{.turno.año}} {{$.nombre}}", "Ana B 2026 Ana"},
		{"[{{.vacio}}] {{.si}} {{.no}}", "[] true false"},
		{"{{.uno}} {{.cero}} {{.precio}} {{.largo}} {{.cien}} {{.chico}} {{.millon}}", "1 0 10.50 12345678901234567890 100 -0.0025 1000000"},
		{"{{if .apodo}}a{{else}}b{{end}}{{if .vacio}}a{{else}}b{{end}}{{if .cero}}a{{else}}b{{end}}{{if .no}}a{{else}}b{{end}}", "bbbb"},
		{"{{if .ninguno}}a{{else}}b{{end}}{{if .turno}}a{{end}}{{if not .apodo}}a{{end}}{{if .precio}}a{{end}}", "baaa"},
		{"{{with .apodo}}{{.}}{{else}}{{.nombre}}{{end}} {{or .apodo .nombre}} {{and .si .nombre}}", "Ana Ana Ana"},
		{"{{.uno}} turno{{if ne .uno 1}}s{{end}} {{.cero}} turno{{if ne .cero 1}}s{{end}}", "1 turno 0 turnos"},
		{"{{if gt .cien 99}}a{{end}}{{if le .cero 0}}b{{end}}{{if ge .uno 1}}c{{end}}{{if lt .uno 2}}d{{end}}{{if eq .nombre `Ana`}}e{{end}}", "abcde"},
		{"{{range $i, $x := .items}}{{if lt $i 2}}{{$i}}={{$x}} {{end}}{{end}}", "0=a 1=2 "},
		{"{{range .ninguno}}a{{else}}nada{{end}} {{range .apodo}}a{{else}}nada{{end}}", "nada nada"},
		{"{{range $k, $v := .turno}}{{$k}}={{$v}} {{end}}", "año=2026 sala=B "},
		{"{{range .items}}{{break}}{{end}}{{range .items}}{{continue}}{{end}}ok", "ok"},
		{"{{index .items 0}} {{index .items .uno}} {{index .items 2 `n`}} {{index . `con-guion`}} {{len .items}}", "a 2 c x 3"},
		{"{{$x := .apodo}}{{$y := .items}}{{$y = .nombre}}{{$y}}", "Ana"},
		{"{{/* nota */}}a {{- .uno -}} b", "a1b"},
		{"{{define `f`}}({{.}}){{end}}{{template `f` .nombre}}{{template `f` .uno}}", "(Ana)(1)"},
		{"{{3}} {{1.50}} {{`x`}} {{true}}", "3 1.5 x true"},
	} {
		for kind, render := range map[string]func(testing.TB, string, string) (string, error){"text": renderText, "HTML": renderHTML} {
			got, err := render(t, test.body, data)
			if err != nil || got != test.want {
				t.Errorf("%s in %s: got %q, %v, want %q", test.body, kind, got, err, test.want)
			}
		}
	}
}

func TestEmailTakesDataOfAnyShape(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ body, data, want string }{
		{"{{index . 0}}", `["Ana"]`, "Ana"},
		{"{{.}}", `"Ana"`, "Ana"},
		{"{{.}}", ` 7 `, "7"},
		{"fijo", ``, "fijo"},
		{"fijo", `null`, "fijo"},
	} {
		if got, err := renderText(t, test.body, test.data); err != nil || got != test.want {
			t.Errorf("%s of %s: got %q, %v, want %q", test.body, test.data, got, err, test.want)
		}
	}
	for _, data := range []string{`{`, `{}{}`, `{} x`, `Ana`, `{"a": 1e99999}`, `{"a": 1e-99999999999999999999}`} {
		if got, err := renderText(t, "fijo", data); err == nil {
			t.Errorf("%s: got %q, want an error", data, got)
		} else if strings.Contains(err.Error(), "Ana") {
			t.Errorf("%s: the error repeats the data: %v", data, err)
		}
	}
}

func TestEmailUsesPartialsOfTheSameEnding(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{
		"turno.asunto.txt": `{{template "_club.txt" .}}: turno`,
		"turno.html":       `<p>x</p>{{template "_pie.html" .}}`,
		"turno.txt":        "x\n{{template \"_pie.txt\" .}}",
		"_pie.html":        "<hr>{{.club}}{{template `_fin.html`}}\n",
		"_fin.html":        "<br>",
		"_pie.txt":         "-- \n{{template \"_club.txt\" .}}\n",
		"_club.txt":        "{{.club}}\n",
	})
	got, err := set.Email(row(`{"club": "A & B"}`))
	want := transporte.Rendered{Subject: "A & B: turno", HTML: "<p>x</p><hr>A &amp; B<br>", Text: "x\n-- \nA & B"}
	if err != nil || got != want {
		t.Errorf("got %+q, %v, want %+q", got, err, want)
	}
	for _, name := range []string{"_pie", "_pie.html", "turno.html"} {
		if _, err := set.Email(transporte.Message{Template: name, Data: []byte(`{"club": "x"}`)}); err == nil {
			t.Errorf("%s is an email", name)
		}
	}
}

func TestEmailFailsOnALineBreakInTheSubject(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"turno.asunto.txt": "Hola {{.nombre}}", "turno.txt": "x"})
	for _, s := range []string{`\n`, `\r`, `a\nBcc: eva@club.example`, `a\u0000b`, `a\u2028b`, `a\u2029b`, `a\u0085b`, `a\u000bb`, `a\fb`} {
		if r, err := set.Email(row(`{"nombre": "` + s + `"}`)); err == nil || r != (transporte.Rendered{}) {
			t.Errorf("%s: got %+v, want an error", s, r)
		} else if strings.Contains(err.Error(), "eva") {
			t.Errorf("%s: the error repeats the data: %v", s, err)
		}
	}
	if r, err := set.Email(row(`{"nombre": "a\tb ñ"}`)); err != nil || r.Subject != "Hola a\tb ñ" {
		t.Errorf("got %q, %v, want a tab to be left", r.Subject, err)
	}
}

func TestEmailFailsOnAValueThatIsUnsafeInItsPlace(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`<a href="{{.x}}">x</a>`, `<img src={{.x}}>`, `<p style="color: {{.x}}">x</p>`, `<style>{{.x}}</style>`} {
		if got, err := renderHTML(t, body, `{"x": "javascript:alert(1)//expression("}`); err == nil {
			t.Errorf("%s: got %s, want an error", body, got)
		}
	}
	got, err := renderHTML(t, `<a href="{{.x}}">x</a>`, `{"x": "https://club.example/a?b=1"}`)
	if want := `<a href="https://club.example/a?b=1">x</a>`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestCorreoDiscardsWhatDoesNotRender(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"turno.asunto.txt": "Hola {{.nombre}}", "turno.txt": "x", "aviso.whatsapp.txt": ""})
	send := func(context.Context, transporte.Email) (string, error) { return "email-1", nil }
	correo, err := transporte.NewCorreo("avisos@club.example", set.Email, send)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []transporte.Message{
		{Template: "turno", Data: []byte(`{}`)}, {Template: "turno", Data: []byte(`{"nombre": "a\nb"}`)}, {Template: "turno", Data: []byte(`{`)},
		{Template: "otro"}, {Template: "aviso"}, {Template: "../turno"}, {},
	} {
		m.Destination = "ana@club.example"
		_, err := correo.Send(t.Context(), m)
		wantRenderFault(t, err)
	}
	m := row(`{"nombre": "Ana"}`)
	m.Destination = "ana@club.example"
	if id, err := correo.Send(t.Context(), m); err != nil || id != "email-1" {
		t.Errorf("got %q, %v, want it sent", id, err)
	}
}
