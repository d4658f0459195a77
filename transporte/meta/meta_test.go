package meta_test

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
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/meta"
)

func TestMain(m *testing.M) { sendertest.Main(m) }

var club = meta.Credentials{Token: "key-of-t1", PhoneNumberID: "106540352242922"}

func appointment() transporte.Template {
	return transporte.Template{To: "5491145678901", Name: "turno", Parameters: []string{"Ana"}, RowID: "row-1"}
}

func newProvider(t *testing.T, opts meta.Options) *meta.Provider {
	t.Helper()
	p, err := meta.New(opts)
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
		p := newProvider(t, meta.Options{BaseURL: baseURL, Client: client})
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
		c := meta.Credentials{Token: "key-of-t2", PhoneNumberID: "107", Language: test.tenant}
		p := newProvider(t, meta.Options{BaseURL: s.URL + "/v25.0/", Language: test.options})
		id, err := p.Send(t.Context(), c, appointment())
		if id != "wamid.1" || err != nil {
			t.Errorf("got %q, %v, want the provider's id", id, err)
		}
		wantBody := `{"messaging_product":"whatsapp","recipient_type":"individual","to":"5491145678901","type":"template",` +
			`"template":{"name":"turno","language":{"code":"` + test.want + `"},"components":[{"type":"body","parameters":[` +
			`{"type":"text","text":"Ana"}]}]},"biz_opaque_callback_data":"row-1"}`
		wantHeader := http.Header{
			"Authorization": {"Bearer key-of-t2"}, "Content-Type": {"application/json"},
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
	_, _ = newProvider(t, meta.Options{Client: client}).Send(t.Context(), club, appointment())
	if url != "https://graph.facebook.com/v24.0/106540352242922/messages" {
		t.Errorf("got %s", url)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCredentialsThatCannotWorkAreRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was called") })
	tests := []struct {
		c    meta.Credentials
		code string
	}{
		{meta.Credentials{}, "clave_invalida"},
		{meta.Credentials{Token: "key\n", PhoneNumberID: "107"}, "clave_invalida"},
		{meta.Credentials{Token: "a key", PhoneNumberID: "107"}, "clave_invalida"},
		{meta.Credentials{Token: "kéy", PhoneNumberID: "107"}, "clave_invalida"},
		{meta.Credentials{Token: "key"}, "numero_emisor_invalido"},
		{meta.Credentials{Token: "key", PhoneNumberID: "../107"}, "numero_emisor_invalido"},
	}
	for _, test := range tests {
		_, err := newProvider(t, meta.Options{BaseURL: s.URL}).Send(t.Context(), test.c, appointment())
		sendertest.Want(t, err, transporte.Error{Category: outbox.Credentials, Code: test.code})
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for names, opts := range map[string]meta.Options{
		"BaseURL":  {BaseURL: "graph.example/v24.0"},
		"Language": {Language: "es-AR"},
	} {
		p, err := meta.New(opts)
		if p != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "meta.New") || !strings.Contains(err.Error(), names) {
			t.Errorf("got %v, %v, want ErrInvalidOptions that names %s", p, err, names)
		}
	}
}

func TestAFailureIsToldByMetasTable(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"(#131049) Ana","code":131049}}`)
	})
	_, err := newProvider(t, meta.Options{BaseURL: s.URL}).Send(t.Context(), club, appointment())
	sendertest.Want(t, err, transporte.Error{Category: outbox.Limit, Code: "131049", RetryAfter: 24 * time.Hour})
}

func TestCredentialsPrintNoSecret(t *testing.T) {
	t.Parallel()
	c := meta.Credentials{Token: "marker-of-a-secret", PhoneNumberID: "42"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if s := fmt.Sprintf(verb, c); strings.Contains(s, "marker") || !strings.Contains(s, "42") {
			t.Errorf("%s: got %s, want the id of the number and no secret", verb, s)
		}
	}
}
