package plantillas_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
)

func FuzzPathsAgainstAnyData(f *testing.F) {
	f.Add("nombre", `{"nombre": "Ana"}`)
	f.Add("turno.hora", `{"turno": {"hora": 10.50}}`)
	f.Add("items.0", `{"items": [true, null]}`)
	f.Add("0.0", `[[1e3]]`)
	f.Add("a..b", `{"a": {"": {"b": 1}}}`)
	f.Add("1", `{"1": -0}`)
	f.Add("a", `{"a": "x", "a": "y"}`)
	f.Add("a", `{"a": 1e16000}`)
	f.Add("a", `{"a": "\ud800"} `)
	f.Fuzz(func(t *testing.T, path, data string) {
		got, err := pick(path, data)
		want, found := naivePick(path, data)
		switch {
		case !found && err == nil:
			t.Errorf("%q of %q: got %q, want an error", path, data, got)
		case err == nil && strings.TrimSpace(got) == "":
			t.Errorf("%q of %q: got a blank", path, data)
		case err == nil && want != "" && got != want: // it has no answer for some numbers
			t.Errorf("%q of %q: got %q, want %q", path, data, got, want)
		}
		if again, errAgain := pick(path, data); again != got || (err == nil) != (errAgain == nil) {
			t.Errorf("%q of %q: got %q, %v, then %q, %v", path, data, got, err, again, errAgain)
		}
	})
}

// naivePick walks raw JSON, one level at a time.
func naivePick(path, data string) (want string, found bool) {
	raw := json.RawMessage(data)
	if !json.Valid(raw) {
		return "", false
	}
	for name := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(raw, &object) == nil && object != nil {
			if raw, found = object[name]; !found {
				return "", false
			}
		} else if json.Unmarshal(raw, &list) == nil && list != nil {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(list) {
				return "", false
			}
			raw = list[i]
		} else {
			return "", false
		}
	}
	switch first := raw[0]; {
	case first == '"':
		return want, json.Unmarshal(raw, &want) == nil && strings.TrimSpace(want) != ""
	case string(raw) == "true", string(raw) == "false":
		return string(raw), true
	case first == '{', first == '[', string(raw) == "null":
		return "", false
	}
	if strings.ContainsAny(string(raw), "eE-") { // written otherwise, see TestNumbersReadAsPostgresWritesThem
		return "", true
	}
	return string(raw), true
}

func FuzzATemplateNameReachesNoOtherFile(f *testing.F) {
	set := load(f, map[string]string{
		"turno.asunto.txt": "x", "turno.txt": "turno", "turno.whatsapp.txt": "", "_pie.txt": "x", "_pie.html": "x",
	})
	for _, name := range []string{"turno", "../turno", "./turno", "turno.txt", "turno.asunto", "_pie", "_pie.txt", "", ".", "/etc/passwd",
		"turno\x00", "TURNO", "turno/../turno", `..\turno`, "turno.whatsapp"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m := transporte.Message{Template: name}
		r, err := set.Email(m)
		_, errParameters := set.Parameters(m)
		if known := name == "turno"; known != (err == nil) || known != (errParameters == nil) || known != (r.Text == "turno") {
			t.Errorf("%q: got %+v, %v and %v", name, r, err, errParameters)
		}
	})
}

func FuzzAFileNameIsATemplateOrAFault(f *testing.F) {
	for _, name := range []string{"otro.txt", "otro.asunto.txt", "a b.txt", "-x.html", ".x.txt", "_x.html", "..txt", "a.b-c_D9.whatsapp.txt",
		"x.asunto.asunto.txt", "\xff.txt", "txt", ".txt", "x.TXT"} {
		f.Add(name)
	}
	valid := regexp.MustCompile(`^(_?[A-Za-z0-9][A-Za-z0-9_.-]*|_[A-Za-z0-9_.-]*)\.(txt|html)$`)
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "." || strings.ContainsRune(name, '/') {
			t.Skip("not the name of a file")
		}
		files := fstest.MapFS{"turno.whatsapp.txt": {}, name: {Data: []byte("x")}}
		_, err := plantillas.Load(files)
		if strings.HasPrefix(name, ".") {
			if err != nil {
				t.Errorf("%q: got %v, want it left alone", name, err)
			}
			return
		}
		if err == nil && !valid.MatchString(name) {
			t.Errorf("%q is a template", name)
		}
	})
}

func FuzzEmailOfAnyTemplateAndData(f *testing.F) {
	f.Add("Hola {{.a}}", "<p>{{.a}}</p>", `{"a": "x"}`)
	f.Add("{{range .a}}{{.}}{{end}}", `<a href="{{index .a 0}}">`, `{"a": ["\n", 1e3, null]}`)
	f.Add("{{len .}}", "{{if eq .a .b}}x{{end}}", `{"a": 1, "b": 1.5}`)
	f.Add("{{block `x` .}}{{end}}", "<script>{{.}}</script>", `"</script>"`)
	f.Fuzz(func(t *testing.T, subject, html, data string) {
		set, err := plantillas.Load(folder(map[string]string{"turno.asunto.txt": subject, "turno.html": html}))
		if err != nil {
			return
		}
		r, err := set.Email(row(data))
		if err != nil && r != (transporte.Rendered{}) {
			t.Errorf("got %+q beside %v", r, err)
		}
		if strings.ContainsAny(r.Subject, "\r\n\x00") || strings.Contains(r.HTML, "ZgotmplZ") {
			t.Errorf("got %+q", r)
		}
		if again, errAgain := set.Email(row(data)); again != r || (err == nil) != (errAgain == nil) {
			t.Errorf("got %+q, %v, then %+q, %v", r, err, again, errAgain)
		}
		var syntax *json.SyntaxError
		if err == nil && data != "" && errors.As(json.Unmarshal([]byte(data), new(any)), &syntax) {
			t.Errorf("%q rendered", data)
		}
	})
}
