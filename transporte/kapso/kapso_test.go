package kapso_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/kapso"
)

func TestMain(m *testing.M) { sendertest.Main(m) }

var club = kapso.Credentials{APIKey: "key-of-t1", PhoneNumberID: "106540352242922"}

func appointment() transporte.Template {
	return transporte.Template{To: "5491145678901", Name: "turno", Parameters: []string{"Ana"}, RowID: "row-1"}
}

func newProvider(t *testing.T, opts kapso.Options) *kapso.Provider {
	t.Helper()
	p, err := kapso.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTenThousandTemplatesOver64Connections(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, id, _ := strings.Cut(string(body), `"biz_opaque_callback_data":"`)
		_, _ = fmt.Fprintf(w, `{"messages":[{"id":"%s"}]}`, strings.TrimSuffix(id, `"}`))
	}
	sendertest.Load(t, answer, func(client *http.Client, baseURL string) func(context.Context, string) (string, error) {
		p := newProvider(t, kapso.Options{BaseURL: baseURL, Client: client})
		return func(ctx context.Context, id string) (string, error) {
			m := appointment()
			m.RowID = id
			return p.Send(ctx, club, m)
		}
	})
}

func TestATenantSendsWithItsOwnCredentialsAndLanguage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		options, tenant, want string
	}{
		{"", "", "es_AR"},
		{"pt_BR", "", "pt_BR"},
		{"pt_BR", "es", "es"},
	}
	for _, test := range tests {
		var path, body string
		var header http.Header
		s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
			read, _ := io.ReadAll(r.Body)
			path, header, body = r.Method+" "+r.URL.Path, r.Header, string(read)
			_, _ = io.WriteString(w, `{"messages":[{"id":"wamid.1"}]}`)
		})
		c := kapso.Credentials{APIKey: "key-of-t2", PhoneNumberID: "107", Language: test.tenant}
		p := newProvider(t, kapso.Options{BaseURL: s.URL + "/v25.0/", Language: test.options})
		id, err := p.Send(t.Context(), c, appointment())
		if id != "wamid.1" || err != nil {
			t.Errorf("got %q, %v, want the provider's id", id, err)
		}
		wantBody := `{"messaging_product":"whatsapp","recipient_type":"individual","to":"5491145678901","type":"template",` +
			`"template":{"name":"turno","language":{"code":"` + test.want + `"},"components":[{"type":"body","parameters":[` +
			`{"type":"text","text":"Ana"}]}]},"biz_opaque_callback_data":"row-1"}`
		wantHeader := http.Header{
			"X-Api-Key": {"key-of-t2"}, "Content-Type": {"application/json"},
			"Content-Length": {strconv.Itoa(len(wantBody))}, "User-Agent": {"outbox-relay"},
		}
		if path != "POST /v25.0/107/messages" || body != wantBody || !reflect.DeepEqual(header, wantHeader) {
			t.Errorf("got  %s %v %s\nwant %v %s", path, header, body, wantHeader, wantBody)
		}
	}
}

func TestTheZeroOptionsSendToTheDocumentedAddress(t *testing.T) {
	t.Parallel()
	var url string
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		url = r.URL.String()
		return nil, errors.New("no")
	})}
	_, _ = newProvider(t, kapso.Options{Client: client}).Send(t.Context(), club, appointment())
	if url != "https://api.kapso.ai/meta/whatsapp/v24.0/106540352242922/messages" {
		t.Errorf("got %s", url)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCredentialsThatCannotWorkAreRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was called") })
	tests := []struct {
		c    kapso.Credentials
		code string
	}{
		{kapso.Credentials{}, "clave_invalida"},
		{kapso.Credentials{APIKey: "key\n", PhoneNumberID: "107"}, "clave_invalida"},
		{kapso.Credentials{APIKey: "a key", PhoneNumberID: "107"}, "clave_invalida"},
		{kapso.Credentials{APIKey: "kéy", PhoneNumberID: "107"}, "clave_invalida"},
		{kapso.Credentials{APIKey: "key"}, "numero_emisor_invalido"},
		{kapso.Credentials{APIKey: "key", PhoneNumberID: "../107"}, "numero_emisor_invalido"},
	}
	for _, test := range tests {
		_, err := newProvider(t, kapso.Options{BaseURL: s.URL}).Send(t.Context(), test.c, appointment())
		sendertest.Want(t, err, transporte.Error{Category: outbox.Credentials, Code: test.code})
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for names, opts := range map[string]kapso.Options{
		"BaseURL":  {BaseURL: "graph.example/v24.0"},
		"Language": {Language: "es-AR"},
	} {
		p, err := kapso.New(opts)
		if p != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "kapso.New") || !strings.Contains(err.Error(), names) {
			t.Errorf("got %v, %v, want ErrInvalidOptions that names %s", p, err, names)
		}
	}
}

func TestCredentialsPrintNoSecret(t *testing.T) {
	t.Parallel()
	c := kapso.Credentials{APIKey: "marker-of-a-secret", PhoneNumberID: "42"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if s := fmt.Sprintf(verb, c); strings.Contains(s, "marker") || !strings.Contains(s, "42") {
			t.Errorf("%s: got %s, want the id of the number and no secret", verb, s)
		}
	}
}
