package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// everything has a value for each key of the file. Secrets are hunter2 with a number.
const everything = `
log: {level: debug, format: json}
http: {address: "127.0.0.1:1", pprof: true, tolerance: 1m, poll_only: true}
tracing: {endpoint: http://localhost:4318, headers: {authorization: hunter20}, continue: true}
outboxes:
  - name: main
    database: postgres://relay:hunter21@db:5432/club?sslmode=require&sslpassword=hunter22
    listen_database: host=db user=relay password='hunter2 \'3' dbname=club
    schema: s
    table: t
    tenant_column: c
    tenant_type: text
    pool: {max_connections: 9}
    batch: 1
    concurrency: 2
    lease: 8m
    timeout: 7s
    backoff: {base: 1s, factor: 3, cap: 1h30m, jitter: -1}
    poll_interval: 2s
    probe_interval: 3s
    no_watch: true
    durable_claims: true
    leave_unknown_channels: true
    retention: {enviado: 30d, fallido: 90d, descartado: 36h}
    channels:
      print: {sender: print}
      resend: {sender: resend, from: a@b.example, templates: /t, api_key: hunter24, reply_to: c@b.example, base_url: http://r,
        concurrency: 3, timeout: 4s, max_attempts: 10, backoff: {schedule: [1s, 2d], jitter: 0.5}}
      smtp: {sender: smtp, from: a@b.example, templates: /t, server: "s:25", username: u, password: hunter25, tls: none, ca_file: /ca, max_connections: 1,
        idle_timeout: 1s, max_messages: 2, local_name: l, message_id_domain: d, idempotency_header: h}
      kapso: {sender: kapso, language: es, base_url: http://k, templates: /t, api_key: hunter26, phone_number_id: 00123,
        tenants: {t1: {api_key: hunter27, phone_number_id: 4, language: en}}, credentials: {query: select 1, ttl: 1m, missing_ttl: 1s, max: 5}}
      meta: {sender: meta, language: es, base_url: http://m, templates: /t, token: hunter28, phone_number_id: 5,
        tenants: {t1: {token: hunter29, phone_number_id: 6, language: en}}, credentials: {query: select 1}}
      webhook: {sender: webhook, url: "https://w.example", secrets: [hunter2a, hunter2b], permanent: [422], allow: [10.0.0.0/8], ports: [8443],
        allow_http: true, development: true, ca_file: /ca, tenants: {t1: {url: "https://v.example", secrets: [hunter2c], permanent: [400]}},
        credentials: {query: select 2, by: destination}}
`

func TestTheEffectiveConfigurationHasEveryKeyAndNoSecret(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, everything, nil, nil)
	for name, print := range map[string]func() ([]byte, error){"YAML": c.YAML, "JSON": c.JSON} {
		text, err := print()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("%s: a secret is in\n%s", name, text)
		}
		var got, want any
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(everything), &want); err != nil {
			t.Fatal(err)
		}
		for _, key := range missing(want, got, "") {
			t.Errorf("%s lacks %s:\n%s", name, key, text)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if printed := fmt.Sprintf(verb, *c); strings.Contains(printed, "hunter2") {
			t.Errorf("%s prints a secret: %s", verb, printed)
		}
	}
}

// missing are the keys of want that got has not.
func missing(want, got any, at string) (keys []string) {
	switch want := want.(type) {
	case map[string]any:
		all, _ := got.(map[string]any)
		for key, value := range want {
			if _, ok := all[key]; !ok {
				keys = append(keys, at+"."+key)
				continue
			}
			keys = append(keys, missing(value, all[key], at+"."+key)...)
		}
	case []any:
		all, _ := got.([]any)
		for i, value := range want {
			if i >= len(all) {
				return append(keys, fmt.Sprintf("%s[%d]", at, i))
			}
			keys = append(keys, missing(value, all[i], fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return keys
}

func TestWhatIsPrintedIsReadAsTheSame(t *testing.T) {
	t.Parallel()
	for _, text := range []string{everything, "outboxes: [{channels: {a: {sender: print}}}]"} {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "relay:hunter21@", "relay@"), "hunter2", "x")
		first := mustLoad(t, text, nil, nil)
		first.Outboxes[0].Database, first.Outboxes[0].ListenDatabase = "dbname=a", "dbname=b" // whose masks are no strings to connect by
		printed, err := first.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := mustLoad(t, string(printed), nil, nil).YAML()
		if err != nil || string(again) != string(printed) {
			t.Errorf("got %v\n%s\nwant\n%s", err, again, printed)
		}
	}
}

func TestEveryKeyStandsInEverything(t *testing.T) {
	t.Parallel()
	var all any
	if err := yaml.Unmarshal([]byte(everything), &all); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	gather(all, keys)
	for _, key := range Keys() {
		if !keys[key] && key != "preset" { // which is printed as what it stands for
			t.Errorf("%s does not", key)
		}
	}
}

func gather(node any, keys map[string]bool) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			keys[key] = true
			gather(value, keys)
		}
	case []any:
		for _, value := range node {
			gather(value, keys)
		}
	}
}

func TestPasswordsOfConnectionStringsAreMasked(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[DSN]string{
		"":                                 "",
		"postgres://h/d":                   "postgres://h/d",
		"postgres://u@h/d":                 "postgres://u@h/d",
		"postgres://u:p@h/d":               "postgres://u:***@h/d",
		"postgresql://u:p@h1:1,h2:2/d?a=b": "postgresql://u:***@h1:1,h2:2/d?a=b",
		"postgres://u@h/d?password=p&a=b":  "postgres://u@h/d?a=b",
		"postgres://u:p p@h/d":             "***",
		"postgres://u:p@[::/d":             "***",
		"host=h password=p user=u":         "host=h password=*** user=u",
		`password = 'p \' q' user=u`:       "password=*** user=u",
		"user=u sslpassword=p password=q":  "user=u sslpassword=*** password=***",
		"user=u PASSWORD=p":                "user=u PASSWORD=***",
		"postgres://u@h/d?PASSWORD=p&a=b":  "postgres://u@h/d?a=b",
		"POSTGRES://u:p@h/d":               "postgres://u:***@h/d",
		"u:p@h/d":                          "***",
	} {
		if got := fmt.Sprint(dsn); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWhatMayBeSecretInAURLIsMasked(t *testing.T) {
	t.Parallel()
	for u, want := range map[URL]string{
		"":                              "",
		"http://localhost:4318":         "http://localhost:4318",
		"https://u:p@h:4318/v1/traces":  "https://***@h:4318/v1/traces",
		"https://key@h/":                "https://***@h/",
		"https://h/v1?api_key=p&tenant": "https://h/v1?***",
		"https://h:p p/":                "***",
	} {
		if got := fmt.Sprint(u); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzMaskedConnectionStringsHaveNoPassword(f *testing.F) {
	for _, password := range []string{"hunter2", "p@ss:w/rd", "a b'c", `\`, "%41", "äöü", "password=x"} {
		f.Add(password)
	}
	f.Fuzz(func(t *testing.T, password string) {
		if len(password) < 4 || strings.Contains(mask, password) {
			return
		}
		u := url.URL{Scheme: "postgres", User: url.UserPassword("u", password), Host: "h", Path: "/d"}
		quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
		for _, dsn := range []DSN{DSN(u.String()), DSN("postgres://h/d?password=" + url.QueryEscape(password)), DSN("user=u password='" + quoted + "' dbname=d")} {
			without := strings.NewReplacer("postgres", "", "password", "", "user", "", "dbname", "").Replace(dsn.masked())
			if strings.Contains(without, password) || strings.Contains(without, quoted) {
				t.Errorf("got %s of %s", dsn.masked(), string(dsn))
			}
		}
	})
}

func TestTheSchemaInTheDocumentsIsThatOfTheStructs(t *testing.T) {
	t.Parallel()
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/relay.schema.json")
	if err != nil || string(got) != string(want) {
		t.Errorf("docs/relay.schema.json is another (%v): go run ./cmd/relay config schema > docs/relay.schema.json", err)
	}
	var schema any
	if err := json.Unmarshal(want, &schema); err != nil {
		t.Fatal(err)
	}
	keys, inSchema := map[string]bool{}, map[string]bool{}
	var all any
	if err := yaml.Unmarshal([]byte(everything), &all); err != nil {
		t.Fatal(err)
	}
	gather(all, keys)
	gather(schema, inSchema)
	for _, free := range []string{"authorization", "t1", "main"} { // names that the file's author chooses
		delete(keys, free)
	}
	for name := range senders {
		delete(keys, name) // of channels
	}
	for key := range keys {
		if !inSchema[key] {
			t.Errorf("the schema lacks %s", key)
		}
	}
}

func TestTimesAreWrittenShortAndReadInDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"30d": "30d", "48h": "2d", "90m": "1h30m", "60s": "1m", "1h0m5s": "1h0m5s", "250ms": "250ms", "0": "0s", "36h": "36h", "0d": "0s", "-1d": "-24h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "d", "1", "1.5d", "99999d", "-99999d", "1w", "1 h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %s, want an error", text, d)
		}
	}
}
