package whatsappcloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestMain(m *testing.M) { sendertest.Main(m) }

func appointment() transporte.Template {
	return transporte.Template{
		To: "5491145678901", Name: "gf_turno_recordatorio", Parameters: []string{"Ana", "10:00"},
		RowID: "6f1c2a34-5b6d-4e7f-8a90-112233445566", IdempotencyKey: "t1:turno-7",
	}
}

func send(ctx context.Context, client *http.Client, baseURL string) (string, error) {
	n := Number{BaseURL: baseURL, PhoneNumberID: "106540352242922", Language: "es_AR", Faults: Faults}
	return Send(ctx, httpsend.Client(client), n, http.Header{"Authorization": {"Bearer t"}}, appointment())
}

func TestWithoutAnAnswer(t *testing.T) { t.Parallel(); sendertest.Outages(t, send) }

func TestAnOddAnswer(t *testing.T) { t.Parallel(); sendertest.OddAnswers(t, send) }

func TestTheDestinationAsksToWait(t *testing.T) { t.Parallel(); sendertest.Waits(t, send) }

const accepted = `{"messaging_product":"whatsapp","contacts":[{"input":"5491145678901","wa_id":"5491145678901"}],` +
	`"messages":[{"id":"wamid.HBgNNTQ5","message_status":"held_for_quality_assessment"}]}`

func TestTheRequestIsTheOneThatMetaDocuments(t *testing.T) {
	t.Parallel()
	var path, body string
	var header http.Header
	s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		read, _ := io.ReadAll(r.Body)
		path, body, header = r.Method+" "+r.URL.Path, string(read), r.Header
		_, _ = io.WriteString(w, accepted)
	})
	id, err := send(t.Context(), nil, s.URL+"/v24.0")
	if id != "wamid.HBgNNTQ5" || err != nil {
		t.Errorf("got %q, %v, want the provider's id", id, err)
	}
	if path != "POST /v24.0/106540352242922/messages" {
		t.Errorf("got %s", path)
	}
	want := `{"messaging_product":"whatsapp","recipient_type":"individual","to":"5491145678901","type":"template",` +
		`"template":{"name":"gf_turno_recordatorio","language":{"code":"es_AR"},"components":[{"type":"body","parameters":[` +
		`{"type":"text","text":"Ana"},{"type":"text","text":"10:00"}]}]},` +
		`"biz_opaque_callback_data":"6f1c2a34-5b6d-4e7f-8a90-112233445566"}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	wantHeader := http.Header{
		"Authorization": {"Bearer t"}, "Content-Type": {"application/json"},
		"Content-Length": {strconv.Itoa(len(want))}, "User-Agent": {"outbox-relay"},
	}
	if !reflect.DeepEqual(header, wantHeader) {
		t.Errorf("got %v, want %v", header, wantHeader)
	}
}

func TestParametersWithNamesCarryThem(t *testing.T) {
	t.Parallel()
	var body string
	s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		read, _ := io.ReadAll(r.Body)
		body = string(read)
		_, _ = io.WriteString(w, accepted)
	})
	m := appointment()
	m.Names = []string{"nombre", "hora_2"}
	n := Number{BaseURL: s.URL, PhoneNumberID: "1", Language: "es_AR", Faults: Faults}
	if id, err := Send(t.Context(), httpsend.Client(nil), n, http.Header{}, m); id != "wamid.HBgNNTQ5" || err != nil {
		t.Errorf("got %q, %v, want the provider's id", id, err)
	}
	want := `{"messaging_product":"whatsapp","recipient_type":"individual","to":"5491145678901","type":"template",` +
		`"template":{"name":"gf_turno_recordatorio","language":{"code":"es_AR"},"components":[{"type":"body","parameters":[` +
		`{"type":"text","parameter_name":"nombre","text":"Ana"},{"type":"text","parameter_name":"hora_2","text":"10:00"}]}]},` +
		`"biz_opaque_callback_data":"6f1c2a34-5b6d-4e7f-8a90-112233445566"}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestNamesThatAreNotThoseOfTheParametersAreRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was called") })
	for _, names := range [][]string{
		{"nombre"}, {"nombre", "hora", "club"}, {"nombre", "nombre"}, {"nombre", ""}, {"1", "2"}, {"Nombre", "hora"},
		{"nombre", "a b"}, {"nombre", "año"}, {"nombre", "{{hora}}"}, {"nombre", "hora-2"},
	} {
		m := appointment()
		m.Names = names
		n := Number{BaseURL: s.URL, PhoneNumberID: "1", Language: "es", Faults: Faults}
		_, err := Send(t.Context(), httpsend.Client(nil), n, http.Header{}, m)
		sendertest.Want(t, err, transporte.Error{Category: outbox.TemplateFault, Code: "nombres_invalidos"})
	}
}

// What Meta answers when a template was made with names and the parameters have none.
func TestMissingNamesAreAFaultOfTheTemplate(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"(#100) Invalid parameter","type":"OAuthException","code":100,`+
			`"error_data":{"messaging_product":"whatsapp","details":"Parameter name is missing or empty"},"fbtrace_id":"A1"}}`)
	})
	_, err := send(t.Context(), nil, s.URL)
	sendertest.Want(t, err, transporte.Error{Category: outbox.TemplateFault, Code: "100"})
}

func TestATemplateWithoutParametersHasNoComponents(t *testing.T) {
	t.Parallel()
	got := string(message("es", transporte.Template{To: "+5491145678901", Name: "hola <&>"}))
	want := `{"messaging_product":"whatsapp","recipient_type":"individual","to":"+5491145678901","type":"template",` +
		`"template":{"name":"hola <&>","language":{"code":"es"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The id becomes part of the address.
func TestCheckNamesTheFieldThatIsWrongAndNotWhatStandsInIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ key, id, language, want string }{
		{"", "", "", ""},
		{"key", "106540352242922", "es_AR", ""},
		{"hunter2 b", "1", "", "Credentials.Token"},
		{"hunter2\n", "1", "", "Credentials.Token"},
		{"key", "+54 911", "", "Credentials.PhoneNumberID"},
		{"key", "1", "es-AR", "Credentials.Language"},
	} {
		err := Check("Token", test.key, test.id, test.language)
		var wrong *outbox.OptionError
		if got := errors.As(err, &wrong); got != (test.want != "") || got && wrong.Field != test.want || got && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: got %v, want an error about %q", test, err, test.want)
		}
	}
}

func TestAPhoneNumberIDThatIsNotANumberIsRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was called") })
	for _, id := range []string{"", " ", "123/../456", "123?x=", "+123", "12\n", "١٢"} {
		_, err := Send(t.Context(), httpsend.Client(nil), Number{BaseURL: s.URL, PhoneNumberID: id, Language: "es"}, http.Header{}, appointment())
		sendertest.Want(t, err, transporte.Error{Category: outbox.Credentials, Code: "numero_emisor_invalido"})
	}
}

func TestAMessageCanAskForAnotherLanguage(t *testing.T) {
	t.Parallel()
	var body string
	s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		read, _ := io.ReadAll(r.Body)
		body = string(read)
		_, _ = io.WriteString(w, accepted)
	})
	n := Number{BaseURL: s.URL, PhoneNumberID: "1", Language: "es_AR", Faults: Faults}
	for language, want := range map[string]string{"": "es_AR", "pt_BR": "pt_BR"} {
		m := appointment()
		m.Language = language
		if _, err := Send(t.Context(), httpsend.Client(nil), n, http.Header{}, m); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(body, `"language":{"code":"`+want+`"}`) {
			t.Errorf("asked for %q: got %s, want %s", language, body, want)
		}
	}
	body = ""
	for _, language := range []string{"pt-BR", "español", `es"}`} {
		m := appointment()
		m.Language = language
		_, err := Send(t.Context(), httpsend.Client(nil), n, http.Header{}, m)
		sendertest.Want(t, err, transporte.Error{Category: outbox.TemplateFault, Code: "idioma_invalido"})
	}
	if body != "" {
		t.Errorf("got %s, want no call", body)
	}
}

func TestALanguageIsWrittenAsMetaWritesIt(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"es": true, "es_AR": true, "fil": true, "prs_AF": true,
		"": false, "es-AR": false, "ES": false, "es_ar": false, "es_": false, "spanish": false, "es_AR_": false, "e": false, "es_ARGE": false,
	}
	for s, want := range tests {
		if got := ValidLanguage(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}
