package transporte_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

type number struct{ key string }

// phone is a provider that keeps what it gets, and the credentials of one tenant, t1.
type phone struct {
	lookups  []string
	credGot  number
	got      []transporte.Template
	failWith error // of the look-up
}

func (p *phone) credentials(_ context.Context, tenantID string) (number, bool, error) {
	p.lookups = append(p.lookups, tenantID)
	return number{"key of " + tenantID}, tenantID == "t1", p.failWith
}

func (p *phone) send(_ context.Context, n number, t transporte.Template) (string, error) {
	p.credGot = n
	p.got = append(p.got, t)
	return "wamid.1", nil
}

func (p *phone) sender(t *testing.T, opts transporte.WhatsAppOptions) *transporte.WhatsApp[number] {
	t.Helper()
	w, err := transporte.NewWhatsApp(p.credentials, p.send, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// appointment is a message that p can send.
func appointment(data string) transporte.Message {
	return transporte.Message{
		ID: "row-1", TenantID: "t1", Destination: "5491122334455", Template: "turno", Data: json.RawMessage(data),
		IdempotencyKey: "t1:turno-7",
	}
}

func TestWhatsAppSendsTheTemplateWithTheCredentialsOfTheTenant(t *testing.T) {
	var p phone
	id, err := p.sender(t, transporte.WhatsAppOptions{}).Send(t.Context(), appointment(`["Ana", "10:00"]`))
	if err != nil || id != "wamid.1" {
		t.Fatalf("got %q, %v, want the provider's id", id, err)
	}
	want := []transporte.Template{{
		To: "5491122334455", Name: "turno", Parameters: []string{"Ana", "10:00"}, RowID: "row-1", IdempotencyKey: "t1:turno-7",
	}}
	if !reflect.DeepEqual(p.got, want) {
		t.Errorf("got %+v, want %+v", p.got, want)
	}
	if p.credGot.key != "key of t1" {
		t.Errorf("got credentials %q, want those of t1", p.credGot.key)
	}
}

func TestWhatsAppTakesParametersFromAnArrayOfStringsAndNumbers(t *testing.T) {
	tests := []struct {
		data string
		want []string // nil: does not render
	}{
		{`["Ana", "10:00"]`, []string{"Ana", "10:00"}},
		{`[10, 10.50, -1, 12345678901234567890]`, []string{"10", "10.50", "-1", "12345678901234567890"}},
		{`["ñ", "<b>&"]`, []string{"ñ", "<b>&"}},
		{`[]`, []string{}},
		{`{"turno": "10:00"}`, []string{}},
		{`"Ana"`, []string{}},
		{`null`, []string{}},
		{``, []string{}},
		{`["Ana", null]`, nil},
		{`[true]`, nil},
		{`[["Ana"]]`, nil},
		{`[{"turno": "10:00"}]`, nil},
		{`["Ana"`, nil},
	}
	for _, test := range tests {
		var p phone
		_, err := p.sender(t, transporte.WhatsAppOptions{}).Send(t.Context(), appointment(test.data))
		if test.want == nil {
			checkFailure(t, err, "plantilla", "render", "Ana")
			continue
		}
		if err != nil || len(p.got) != 1 || !slices.Equal(p.got[0].Parameters, test.want) {
			t.Errorf("%s: got %+v, %v, want parameters %q", test.data, p.got, err, test.want)
		}
	}
}

func TestWhatsAppHandsOnTheLanguageAndTheAttempt(t *testing.T) {
	var p phone
	opts := transporte.WhatsAppOptions{Language: func(m transporte.Message) (string, error) { return m.Template, nil }}
	m := appointment(`[]`)
	m.Attempt = 3
	if _, err := p.sender(t, opts).Send(t.Context(), m); err != nil || p.got[0].Language != "turno" || p.got[0].Attempt != 3 {
		t.Errorf("got %+v, %v, want the language and attempt 3", p.got, err)
	}
	opts.Language = func(transporte.Message) (string, error) { return "", errors.New("Ana speaks none") }
	_, err := p.sender(t, opts).Send(t.Context(), m)
	checkFailure(t, err, "plantilla", "render", "Ana")
	opts.Language = func(transporte.Message) (string, error) { panic("Ana") }
	_, err = p.sender(t, opts).Send(t.Context(), m)
	checkFailure(t, err, "plantilla", "render", "Ana")
	if len(p.got) != 1 {
		t.Errorf("got %d sent, want 1", len(p.got))
	}
}

func TestWhatsAppHandsOnTheNamesOfTheParameters(t *testing.T) {
	var p phone
	opts := transporte.WhatsAppOptions{Names: func(m transporte.Message) ([]string, error) { return []string{m.Template}, nil }}
	if _, err := p.sender(t, opts).Send(t.Context(), appointment(`["Ana"]`)); err != nil || !slices.Equal(p.got[0].Names, []string{"turno"}) {
		t.Errorf("got %+v, %v, want the option's names", p.got, err)
	}
	for name, names := range map[string]func(transporte.Message) ([]string, error){
		"error": func(transporte.Message) ([]string, error) { return nil, errors.New("none for Ana") },
		"panic": func(transporte.Message) ([]string, error) { panic("Ana") },
	} {
		_, err := p.sender(t, transporte.WhatsAppOptions{Names: names}).Send(t.Context(), appointment(`["Ana"]`))
		checkFailure(t, err, "plantilla", "render", "Ana")
		if len(p.got) != 1 {
			t.Errorf("%s: got %d sent, want 1", name, len(p.got))
		}
	}
}

func TestWhatsAppTakesParametersFromTheOption(t *testing.T) {
	var p phone
	opts := transporte.WhatsAppOptions{Parameters: func(m transporte.Message) ([]string, error) {
		return []string{m.Template, string(m.Data)}, nil
	}}
	_, err := p.sender(t, opts).Send(t.Context(), appointment(`["x"]`))
	if err != nil || len(p.got) != 1 || !slices.Equal(p.got[0].Parameters, []string{"turno", `["x"]`}) {
		t.Errorf("got %+v, %v, want the option's parameters", p.got, err)
	}
}

func TestWhatsAppDiscardsAMessageWhoseParametersFail(t *testing.T) {
	tests := map[string]func(transporte.Message) ([]string, error){
		"error": func(transporte.Message) ([]string, error) { return []string{"a"}, errors.New("no turno for Ana") },
		"panic": func(transporte.Message) ([]string, error) { panic("Ana") },
	}
	for name, parameters := range tests {
		t.Run(name, func(t *testing.T) {
			var p phone
			_, err := p.sender(t, transporte.WhatsAppOptions{Parameters: parameters}).Send(t.Context(), appointment(`[]`))
			checkFailure(t, err, "plantilla", "render", "Ana")
			if len(p.lookups)+len(p.got) != 0 {
				t.Error("credentials or provider were asked")
			}
		})
	}
}

func TestWhatsAppRefusesParametersThatMetaWouldRefuse(t *testing.T) {
	tests := []struct{ parameter, code string }{
		{"", "parametro_vacio"},
		{"a\nb", "parametro_invalido"},
		{"a\r", "parametro_invalido"},
		{"\ta", "parametro_invalido"},
		{"a     b", "parametro_invalido"},
		{"a    b", ""}, // four spaces are allowed
		{" ", ""},
		{"¡Hola! 👋", ""},
	}
	for _, test := range tests {
		t.Run(test.parameter, func(t *testing.T) {
			var p phone
			opts := transporte.WhatsAppOptions{Parameters: func(transporte.Message) ([]string, error) {
				return []string{"first", test.parameter}, nil
			}}
			_, err := p.sender(t, opts).Send(t.Context(), appointment(`[]`))
			if test.code == "" {
				if err != nil || len(p.got) != 1 {
					t.Errorf("got %v, %+v, want it sent", err, p.got)
				}
				return
			}
			checkFailure(t, err, "plantilla", test.code)
			if len(p.lookups)+len(p.got) != 0 {
				t.Error("credentials or provider were asked")
			}
		})
	}
}

func TestWhatsAppAcceptsEightToFifteenDigits(t *testing.T) {
	tests := []struct{ to, code string }{
		{"12345678", ""},
		{"+12345678", ""},
		{"123456789012345", ""},
		{"+123456789012345", ""},
		{"", "destino_vacio"},
		{" ", "destino_vacio"},
		{"1234567", "destino_invalido"},
		{"+1234567", "destino_invalido"},
		{"1234567890123456", "destino_invalido"},
		{"++12345678", "destino_invalido"},
		{"12345678+", "destino_invalido"},
		{"11 2233 4455", "destino_invalido"},
		{"12345678\n", "destino_invalido"},
		{"1234a5678", "destino_invalido"},
		{"١٢٣٤٥٦٧٨", "destino_invalido"}, // digits, but not ASCII
		{"ana@club.example", "destino_invalido"},
	}
	for _, test := range tests {
		t.Run(test.to, func(t *testing.T) {
			var p phone
			m := appointment(`[]`)
			m.Destination = test.to
			_, err := p.sender(t, transporte.WhatsAppOptions{}).Send(t.Context(), m)
			if test.code == "" {
				if err != nil || len(p.got) != 1 || p.got[0].To != test.to {
					t.Errorf("got %v, %+v, want it sent to %s", err, p.got, test.to)
				}
				return
			}
			checkFailure(t, err, "numero", test.code, "1234", "ana")
			if len(p.lookups)+len(p.got) != 0 {
				t.Error("credentials or provider were asked")
			}
		})
	}
}

func TestWhatsAppRefusesAMessageWithoutATemplate(t *testing.T) {
	var p phone
	m := appointment(`[]`)
	m.Template = ""
	_, err := p.sender(t, transporte.WhatsAppOptions{}).Send(t.Context(), m)
	checkFailure(t, err, "plantilla", "plantilla_vacia")
	if len(p.lookups)+len(p.got) != 0 {
		t.Error("credentials or provider were asked")
	}
}

func TestWhatsAppTellsMissingCredentialsFromAFailedLookUp(t *testing.T) {
	tests := []struct {
		name, tenant   string
		fails          error
		category, code string
	}{
		{"missing", "t2", nil, "credenciales", "sin_credenciales"},
		{"look-up fails", "t1", errors.New("password of t1"), "red", "credenciales_excepcion"},
		{"look-up fails for a tenant without", "t2", errors.New("password of t2"), "red", "credenciales_excepcion"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := phone{failWith: test.fails}
			m := appointment(`[]`)
			m.TenantID = test.tenant
			_, err := p.sender(t, transporte.WhatsAppOptions{}).Send(t.Context(), m)
			checkFailure(t, err, test.category, test.code, "password", test.tenant)
			if len(p.got) != 0 {
				t.Error("the provider was called")
			}
		})
	}
}

func TestWhatsAppReturnsTheProvidersErrorAsItIs(t *testing.T) {
	for _, want := range []error{&transporte.Error{Category: outbox.Window, Code: "131047"}, context.DeadlineExceeded} {
		var p phone
		send := func(context.Context, number, transporte.Template) (string, error) { return "", want }
		w, err := transporte.NewWhatsApp(p.credentials, send, transporte.WhatsAppOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Send(t.Context(), appointment(`[]`)); err != want {
			t.Errorf("got %v, want %v itself", err, want)
		}
	}
}

func TestWhatsAppGivesBothFunctionsTheContextOfTheAttempt(t *testing.T) {
	type key struct{}
	var got []any
	w, err := transporte.NewWhatsApp(
		func(ctx context.Context, _ string) (int, bool, error) {
			got = append(got, ctx.Value(key{}))
			return 0, true, nil
		},
		func(ctx context.Context, _ int, _ transporte.Template) (string, error) {
			got = append(got, ctx.Value(key{}))
			return "", nil
		},
		transporte.WhatsAppOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Send(context.WithValue(t.Context(), key{}, "attempt"), appointment(`[]`))
	if err != nil || !slices.Equal(got, []any{"attempt", "attempt"}) {
		t.Errorf("got %v, %v, want the context of Send twice", got, err)
	}
}

func TestNewWhatsAppNamesTheArgumentThatIsWrong(t *testing.T) {
	var p phone
	_, noCredentials := transporte.NewWhatsApp(nil, p.send, transporte.WhatsAppOptions{})
	_, noSend := transporte.NewWhatsApp(p.credentials, nil, transporte.WhatsAppOptions{})
	for name, err := range map[string]error{"credentials": noCredentials, "send": noSend} {
		if !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "NewWhatsApp: "+name+" must") {
			t.Errorf("got %v, want ErrInvalidOptions that names %s", err, name)
		}
	}
}

func FuzzWhatsAppPassesOnOnlyWhatMetaAccepts(f *testing.F) {
	f.Add("5491122334455", `["Ana", 10.5]`)
	f.Add("+5491122334455", `["a\u000ab"]`)
	f.Add("5491122334455\n", `["", 1e3, "      "]`)
	f.Fuzz(func(t *testing.T, to, data string) {
		var p phone
		m := appointment(data)
		m.Destination = to
		_, err := p.sender(t, transporte.WhatsAppOptions{}).Send(t.Context(), m)
		if (err == nil) != (len(p.got) == 1) {
			t.Fatalf("got %v and %d templates", err, len(p.got))
		}
		for _, sent := range p.got {
			if len(sent.To) < 8 || strings.ContainsAny(sent.To[1:], "+ \r\n") {
				t.Errorf("to %q got through", sent.To)
			}
			for _, parameter := range sent.Parameters {
				if parameter == "" || strings.ContainsAny(parameter, "\r\n\t") || strings.Contains(parameter, "     ") {
					t.Errorf("parameter %q got through", parameter)
				}
			}
		}
	})
}
