package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// provider is an API that accepts everything and keeps what it was asked.
type provider struct{ asked chan string }

func (p provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.asked <- r.URL.Path + " " + r.Header.Get("X-Api-Key") + r.Header.Get("Authorization") + " " + string(body)
	_, _ = io.WriteString(w, `{"id": "id-1", "messages": [{"id": "id-1"}]}`)
}

// serving makes the senders of a file's first outbox. $API in it is a provider.
func serving(t *testing.T, text string) (*served, provider) {
	t.Helper()
	p := provider{make(chan string, 1)}
	api := httptest.NewServer(p)
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "relay.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "$API", api.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := pgtest.Database(t)
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"DATABASE_URL": dsn}[name]
		return value, ok
	}
	a := &app{ctx: t.Context(), env: env, stdout: io.Discard, stderr: io.Discard, source: config.Source{File: file, Env: env}}
	conf, err := a.config()
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.prepare(conf, conf.Outboxes[0], slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s, p
}

func TestATenantSendsWithWhatItHas(t *testing.T) {
	t.Parallel()
	s, p := serving(t, `outboxes:
  - channels:
      kapso:
        sender: kapso
        base_url: $API/kapso
        api_key: of-all
        phone_number_id: 100
        tenants:
          own: {api_key: its-own, phone_number_id: 200}
          number: {phone_number_id: 300}
        credentials: {query: "select * from (values ('asked', 'by-query', '400')) v (t, api_key, phone_number_id) where t = $1", ttl: 5s}
      meta:
        sender: meta
        base_url: $API/meta
        tenants: {own: {token: its-own, phone_number_id: 500, language: en_US}}
        credentials: {query: "select 'by-query' as token, '600' as phone_number_id from (values ('asked')) v (t) where t = $1"}
      broken:
        sender: meta
        base_url: $API/meta
        credentials: {query: select nowhere from nothing where x = $1}
`)
	for _, test := range []struct{ channel, tenant, want string }{
		{"kapso", "own", "/kapso/200/messages its-own "},
		{"kapso", "number", "/kapso/300/messages of-all "},
		{"kapso", "other", "/kapso/100/messages of-all "},
		{"meta", "own", `/meta/500/messages Bearer its-own {"messaging_product":"whatsapp"`},
		{"meta", "asked", "/meta/600/messages Bearer by-query "},
		{"meta", "other", "sin_credenciales"},
		{"broken", "any", "credenciales_excepcion"},
	} {
		m := transporte.Message{ID: "0d7a3c52-b1f0-4e7f-8a90-112233445566", TenantID: test.tenant, Channel: test.channel, Destination: "5491145678901", Template: "t"}
		got, err := s.send(t.Context(), p, m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s of %s: got %s, want %s", test.channel, test.tenant, got, test.want)
		}
	}
}

// send gives what the provider was asked, or the code of the failure.
func (s *served) send(ctx context.Context, p provider, m transporte.Message) (string, error) {
	id, err := s.senders[m.Channel].Send(ctx, m)
	var failed *transporte.Error
	switch {
	case errors.As(err, &failed):
		return failed.Code, nil
	case err != nil:
		return "", err
	case !strings.Contains(id, "id-1") && id != m.ID:
		return "", errors.New("the provider's id is " + id)
	}
	return <-p.asked, nil
}

func TestAWebhookGoesToTheEndpointOfItsTenantOrDestination(t *testing.T) {
	t.Parallel()
	s, p := serving(t, `outboxes:
  - channels:
      tenant: &webhook
        sender: webhook
        development: true
        secrets: [`+secret+`]
        tenants: {own: {url: $API/own, secrets: [`+secret+`]}}
        credentials:
          query: "select '$API/' || $1::text as url, array['`+secret+`'] as secrets where $1 = 'asked'"
      destination:
        <<: *webhook
        credentials:
          query: "select '' as url, array['`+secret+`'] as secrets where $1 like '%/known'"
          by: destination
`)
	url := p.address(t, s)
	for _, test := range []struct{ channel, tenant, destination, want string }{
		{"tenant", "own", "https://elsewhere.example", "/own "},
		{"tenant", "asked", "https://elsewhere.example", "/asked "},
		{"tenant", "other", url + "/destination", "/destination "},
		{"destination", "own", "https://elsewhere.example", "/own "},
		{"destination", "any", url + "/known", "/known "},
	} {
		m := transporte.Message{ID: "0d7a3c52-b1f0-4e7f-8a90-112233445566", TenantID: test.tenant, Channel: test.channel, Destination: test.destination, Data: []byte("{}")}
		got, err := s.send(t.Context(), p, m)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s of %s to %s: got %s, want %s", test.channel, test.tenant, test.destination, got, test.want)
		}
	}
}

// address is the provider's, which stands in the configuration.
func (provider) address(t *testing.T, s *served) string {
	t.Helper()
	own := s.Channels["tenant"].Options.(*config.Webhook).Tenants["own"].URL
	return strings.TrimSuffix(own, "/own")
}

// folder is one with these files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAWhatsAppTemplateFileGivesParametersTheirNamesAndTheLanguage(t *testing.T) {
	t.Parallel()
	templates := folder(t, map[string]string{
		"orden.whatsapp.txt": "turno.hora\nnombre\n",
		"turno.whatsapp.txt": "@idioma idioma\nhora = turno.hora\nnombre = nombre\n",
	})
	s, p := serving(t, `outboxes:
  - channels:
      kapso: {sender: kapso, base_url: $API, api_key: a, phone_number_id: 100, templates: `+templates+`}
      meta: {sender: meta, base_url: $API, token: a, phone_number_id: 100, templates: `+templates+`}
`)
	for template, want := range map[string]string{
		"orden": `"template":{"name":"orden","language":{"code":"es_AR"},"components":[{"type":"body","parameters":[` +
			`{"type":"text","text":"10:00"},{"type":"text","text":"Ana"}]}]}`,
		"turno": `"template":{"name":"turno","language":{"code":"pt_BR"},"components":[{"type":"body","parameters":[` +
			`{"type":"text","parameter_name":"hora","text":"10:00"},{"type":"text","parameter_name":"nombre","text":"Ana"}]}]}`,
	} {
		for _, channel := range []string{"kapso", "meta"} {
			m := transporte.Message{
				ID: "0d7a3c52-b1f0-4e7f-8a90-112233445566", TenantID: "t", Channel: channel, Destination: "5491145678901",
				Template: template, Data: []byte(`{"nombre": "Ana", "turno": {"hora": "10:00"}, "idioma": "pt_BR"}`),
			}
			got, err := s.send(t.Context(), p, m)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s by %s: got %s, want %s in it", template, channel, got, want)
			}
		}
	}
}

func TestResendSendsWithItsOptions(t *testing.T) {
	t.Parallel()
	templates := folder(t, map[string]string{"hola.asunto.txt": "Hola", "hola.txt": "Hola {{.nombre}}"})
	s, p := serving(t, `outboxes: [{channels: {correo: {sender: resend, base_url: "$API", api_key: re_1, reply_to: club@club.example,
  from: Club <avisos@club.example>, templates: `+templates+`}}}]`)
	m := transporte.Message{ID: "0d7a3c52-b1f0-4e7f-8a90-112233445566", Channel: "correo", Destination: "ana@example.com", Template: "hola", Data: []byte(`{"nombre": "Ana"}`)}
	got, err := s.send(t.Context(), p, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/emails Bearer re_1 ", `"from":"Club <avisos@club.example>"`, `"reply_to":"club@club.example"`, `"text":"Hola Ana"`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
	}
}
