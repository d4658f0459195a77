package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// environment is one of the test's own.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// load reads a file with this text.
func load(t *testing.T, text string, env environment, flags map[string]string) (*Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "relay.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Source{File: file, Flags: flags, Env: env.lookup})
}

func mustLoad(t *testing.T, text string, env environment, flags map[string]string) *Config {
	t.Helper()
	c, err := load(t, text, env, flags)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryFaultOfAFileIsToldWithItsLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string // one for each fault, after the file's name
	}{
		"not YAML":                {"outboxes: [\n", []string{"1: is not YAML: "}},
		"empty":                   {"", []string{" outboxes: there are none: write at least one, such as outboxes: [{"}},
		"no outbox":               {"log: {level: info}\noutboxes: []\n", []string{"2: outboxes: there are none"}},
		"a list as the file":      {"- a\n", []string{"1: must be keys and values, not a list"}},
		"several documents":       {"outboxes: [{}]\n---\noutboxes: [{}]\n", []string{" has several documents"}},
		"unknown key":             {"outboxes:\n  - name: a\n    databse: x\n", []string{`3: unknown key "outboxes[0].databse"; did you mean database?`}},
		"unknown key, far":        {"verbose: true\noutboxes: [{}]\n", []string{`1: unknown key "verbose"; known are log, http, tracing, outboxes`}},
		"hyphens":                 {"outboxes:\n  - poll-interval: 1s\n", []string{`2: unknown key "outboxes[0].poll-interval"; did you mean poll_interval?`}},
		"twice":                   {"outboxes:\n  - batch: 1\n    batch: 2\n", []string{"3: "}},
		"word for a number":       {"outboxes:\n  - batch: many\n", []string{`2: outboxes[0].batch: must be a whole number, got "many"`}},
		"fraction":                {"outboxes:\n  - batch: 1.5\n", []string{`2: outboxes[0].batch: must be a whole number, got "1.5"`}},
		"word for a bool":         {"outboxes:\n  - no_watch: yes please\n", []string{`2: outboxes[0].no_watch: must be true or false, got "yes please"`}},
		"number for a time":       {"outboxes:\n  - lease: 10\n", []string{`2: outboxes[0].lease: must be a time such as 500ms, 30s, 10m, 2h or 30d, got "10"`}},
		"list for a value":        {"outboxes:\n  - lease: [1s]\n", []string{"2: outboxes[0].lease: must be a single value, not a list"}},
		"value for a mapping":     {"outboxes:\n  - pool: 3\n", []string{"2: outboxes[0].pool: must be keys and values, not a single value"}},
		"value for a list":        {"outboxes:\n  - backoff: {schedule: 1s}\n", []string{"2: outboxes[0].backoff.schedule: must be a list"}},
		"enum":                    {"log: {level: loud}\noutboxes: [{}]\n", []string{`1: log.level: must be debug, info, warn or error, got "loud"`}},
		"variable is not set":     {"outboxes:\n  - database: ${NOWHERE}\n", []string{"2: outboxes[0].database: the environment variable NOWHERE is not set"}},
		"variable is empty":       {"outboxes:\n  - database: ${EMPTY}\n", []string{"2: outboxes[0].database: the environment variable EMPTY is not set"}},
		"variable without end":    {"outboxes:\n  - database: ${NOWHERE\n", []string{"2: outboxes[0].database: ${NOWHERE is not a variable"}},
		"no such secret":          {"outboxes:\n  - database: file:nowhere\n", []string{"2: outboxes[0].database: cannot read the secret: open "}},
		"no such anchor":          {"outboxes:\n  - backoff: *slow\n", []string{"2: "}},
		"library's bound":         {"outboxes:\n  - name: a\n    batch: -1\n", []string{"3: outboxes[0].batch: must be at least 1, got -1"}},
		"nested bound":            {"outboxes:\n  - backoff:\n      base: 2m\n      cap: 1m\n", []string{"4: outboxes[0].backoff.cap: must be at least the base (2m0s), got 1m0s"}},
		"bound of a channel":      {"outboxes:\n  - channels:\n      c:\n        sender: print\n        timeout: 1h\n", []string{"5: outboxes[0].channels.c.timeout: must be at most half the lease (5m0s), got 1h0m0s"}},
		"bound of a table":        {"outboxes:\n  - table: " + strings.Repeat("x", 64) + "\n", []string{"2: outboxes[0].table: must be a Postgres identifier of 1 to 63 bytes"}},
		"bound by the default":    {"outboxes:\n  - lease: 1m\n    channels: {c: {sender: print, timeout: 40s}}\n", []string{"3: outboxes[0].channels.c.timeout: must be at most half"}},
		"pool":                    {"outboxes:\n  - pool: {max_connections: -1}\n", []string{"2: outboxes[0].pool.max_connections: must be at least 1"}},
		"retention":               {"outboxes:\n  - retention: {enviado: 1s}\n", []string{"2: outboxes[0].retention.enviado: must be at least 1m"}},
		"an @ in a password":      {"outboxes:\n  - database: postgres://u:hunter2@tail@h/d\n", []string{"2: outboxes[0].database: has an @ in its host"}},
		"a / in a password":       {"outboxes:\n  - database: postgres://u:12/hunter2@h/d\n", []string{"2: outboxes[0].database: has an @ in its host"}},
		"no connection string":    {"outboxes:\n  - database: postgres://u:hunter2@h:port/d\n", []string{"2: outboxes[0].database: must be a connection string"}},
		"no listening string":     {"outboxes:\n  - listen_database: postgres://u:hunter2@h:port/d\n", []string{"2: outboxes[0].listen_database: must be a Postgres connection string"}},
		"no sender":               {"outboxes:\n  - channels:\n      c: {timeout: 1s}\n", []string{"3: outboxes[0].channels.c: needs a sender: kapso, meta, "}},
		"unknown sender":          {"outboxes:\n  - channels:\n      c: {sender: smpt}\n", []string{`3: outboxes[0].channels.c.sender: must be kapso, meta, print, resend, smtp or webhook, got "smpt"`}},
		"empty channel":           {"outboxes:\n  - channels:\n      c:\n", []string{"3: outboxes[0].channels.c: is empty"}},
		"option of another":       {"outboxes:\n  - channels:\n      c: {sender: print, api_key: x}\n", []string{`3: unknown key "outboxes[0].channels.c.api_key"`}},
		"required option":         {"outboxes:\n  - channels:\n      c: {sender: smtp, server: s:25, from: a@b.example}\n", []string{"3: outboxes[0].channels.c: needs templates"}},
		"names":                   {"outboxes:\n  - schema: a\n  - schema: b\n    name: b c\n", []string{"2: outboxes[0]: needs a name", `4: outboxes[1].name: must be letters a to z`}},
		"one name twice":          {"outboxes:\n  - {name: a, schema: a}\n  - {name: a, schema: b}\n", []string{`2: outboxes[0].name: two outboxes`, `3: outboxes[1].name: two outboxes have the name "a"`}},
		"one table twice":         {"outboxes:\n  - {name: a, database: dbname=x}\n  - {name: b, database: dbname=x, table: outbox}\n", []string{"3: outboxes[1]: is the same table as outboxes[0]"}},
		"all of them":             {"lgo: {}\noutboxes:\n  - batch: x\n    lease: y\n", []string{"1: unknown", "3: outboxes[0].batch", "4: outboxes[0].lease"}},
		"a mapping within itself": {"outboxes:\n  - channels: &c {<<: *c, a: {sender: print}}\n", []string{"2: outboxes[0].channels: has too many aliases"}},
		"an alias within itself":  {"outboxes: &a [*a]\n", []string{"1: "}},
		"tolerance":               {"http: {tolerance: -1s}\noutboxes: [{}]\n", []string{"1: http.tolerance: must be at least 0"}},
		"tracing endpoint":        {"tracing:\n  endpoint: localhost:4318\noutboxes: [{}]\n", []string{"2: tracing.endpoint: must be a URL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.text, environment{"EMPTY": ""}, nil)
			faults := Errors(err)
			if len(faults) != len(test.want) {
				t.Fatalf("got %v, want %d faults", err, len(test.want))
			}
			for i, want := range test.want {
				_, got, _ := strings.Cut(faults[i].Error(), "relay.yaml:")
				if !strings.HasPrefix(got, want) || strings.Contains(got, "hunter2") || strings.Contains(got, "\n") {
					t.Errorf("got %q, want one line that begins with %q", got, want)
				}
			}
		})
	}
}

func TestAFlagWinsOverTheEnvironmentAndThatOverTheFile(t *testing.T) {
	t.Parallel()
	const text = "outboxes:\n  - {batch: 1, concurrency: 1, lease: 1m, no_watch: true, pool: {max_connections: 1}}\n"
	env := environment{"RELAY_CONCURRENCY": "2", "RELAY_LEASE": "2m", "RELAY_POOL_MAX_CONNECTIONS": "2", "RELAY_BACKOFF_BASE": "2s", "DATABASE_URL": "dbname=d"}
	flags := map[string]string{"lease": "3m", "no-watch": "false", "retention-enviado": "30d", "log-level": "debug"}
	c := mustLoad(t, text, env, flags)
	o := c.Outboxes[0]
	if o.Batch != 1 || o.Concurrency != 2 || o.Lease.Std() != 3*time.Minute || *o.NoWatch || o.Pool.MaxConnections != 2 ||
		o.Backoff.Base.Std() != 2*time.Second || o.Retention.Sent.Std() != 30*24*time.Hour || c.Log.Level != "debug" || o.Database != "dbname=d" {
		t.Errorf("got %+v and %+v", o, c.Log)
	}
}

func TestAWrongFlagOrVariableIsNamed(t *testing.T) {
	t.Parallel()
	const two = "outboxes:\n  - {name: a}\n  - {name: b, schema: b}\n"
	for want, test := range map[string]struct {
		text  string
		env   environment
		flags map[string]string
	}{
		`RELAY_BATCH: must be a whole number, got "x"`:                        {text: "outboxes: [{}]", env: environment{"RELAY_BATCH": "x"}},
		`RELAY_BATCH: must be at least 1, got -1`:                             {text: "outboxes: [{}]", env: environment{"RELAY_BATCH": "-1"}},
		`--batch must be at least 1, got -1`:                                  {text: "outboxes: [{}]", flags: map[string]string{"batch": "-1"}},
		`--tenant-type must be uuid or text, got "int"`:                       {text: "outboxes: [{}]", flags: map[string]string{"tenant-type": "int"}},
		`--batch concerns one outbox, and there are several: choose one with`: {text: two, flags: map[string]string{"batch": "1"}},
		`RELAY_SCHEMA: concerns one outbox, and there are several`:            {text: two, env: environment{"RELAY_SCHEMA": "x"}},
		`DATABASE_URL: must be a connection string`:                           {text: "outboxes: [{}]", env: environment{"DATABASE_URL": "postgres://a:hunter2@b:c/d"}},
	} {
		_, err := load(t, test.text, test.env, test.flags)
		if faults := Errors(err); len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOneOutboxIsChosenByItsName(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(file, []byte("outboxes:\n  - {name: a}\n  - {name: bonos, schema: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Source{File: file, Outbox: "bonos", Flags: map[string]string{"batch": "7"}, Env: environment{}.lookup})
	if err != nil || len(c.Outboxes) != 1 || c.Outboxes[0].Schema != "b" || c.Outboxes[0].Batch != 7 {
		t.Errorf("got %+v, %v, want bonos with the flag's batch", c, err)
	}
	_, err = Load(Source{File: file, Env: environment{"RELAY_OUTBOX": "bono"}.lookup})
	if err == nil || !strings.Contains(err.Error(), `there is no outbox "bono" in the configuration; did you mean bonos?`) {
		t.Errorf("got %v, want the outbox that is meant", err)
	}
	_, err = Load(Source{File: file + "l", Env: environment{}.lookup})
	if err == nil || !strings.HasSuffix(err.Error(), "r.yamll: there is no such file, which --config names") {
		t.Errorf("got %v, want the missing file", err)
	}
}

func TestSecretsComeFromVariablesAndFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "relay.yaml")
	text := `outboxes:
  - database: postgres://relay:${PASSWORD}@h/d
    channels:
      a: {sender: resend, from: a@b.example, templates: t, api_key: file:key}
      b: {sender: resend, from: a@b.example, templates: /t, api_key: "$${KEY}-${KEY}"}
      c: {sender: resend, from: a@b.example, templates: t, api_key: "${PATH_OF_KEY}"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment{"PASSWORD": "p", "KEY": "k", "PATH_OF_KEY": "file:" + filepath.Join(folder, "key")}
	c, err := Load(Source{File: file, Env: env.lookup})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Resend{
		"a": {APIKey: "from a file", Email: Email{Templates: Path(filepath.Join(folder, "t"))}},
		"b": {APIKey: "${KEY}-k", Email: Email{Templates: "/t"}},
		"c": {APIKey: "from a file", Email: Email{Templates: Path(filepath.Join(folder, "t"))}},
	} {
		got := c.Outboxes[0].Channels[name].Options.(*Resend)
		if got.APIKey != want.APIKey || got.Templates != want.Templates {
			t.Errorf("%s: got %q and %q, want %q and %q", name, string(got.APIKey), got.Templates, string(want.APIKey), want.Templates)
		}
	}
	if string(c.Outboxes[0].Database) != "postgres://relay:p@h/d" {
		t.Errorf("got %q, want the password in it", string(c.Outboxes[0].Database))
	}
}

func TestMergeKeysTakeWhatAMappingHasNot(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, `outboxes:
  - &base
    name: a
    batch: 3
    channels: &channels {correo: {sender: print}}
  - {<<: *base, name: b, schema: b}
  - {name: c, schema: c, channels: *channels}
`, nil, nil)
	b, third := c.Outboxes[1], c.Outboxes[2]
	if b.Name != "b" || b.Batch != 3 || b.Schema != "b" || len(b.Channels) != 1 || third.Channels["correo"].Sender != "print" || third.Batch != 0 {
		t.Errorf("got %+v and %+v", b, third)
	}
}

func TestPresetAndScheduleOfBackoffReachTheRelay(t *testing.T) {
	t.Parallel()
	opts := mustLoad(t, `outboxes:
  - backoff: {schedule: [1s, 1d]}
    channels: {w: {sender: print, backoff: {preset: webhook}}}
`, nil, nil).Outboxes[0].RelayOptions()
	if want := []time.Duration{time.Second, 24 * time.Hour}; !slices.Equal(opts.Backoff.Schedule, want) {
		t.Errorf("got %v, want %v", opts.Backoff.Schedule, want)
	}
	if got := opts.Channels["w"].Backoff.Schedule; !slices.Equal(got, outbox.WebhookBackoff().Schedule) {
		t.Errorf("got %v, want the preset", got)
	}
}

func TestAnOutboxThatPrintsLeavesOtherChannelsAlone(t *testing.T) {
	t.Parallel()
	for sender, want := range map[string]bool{"{sender: print}": true, "{sender: webhook}": false} {
		c := mustLoad(t, "outboxes: [{leave_unknown_channels: false, channels: {c: "+sender+"}}]", nil, nil)
		if got := c.Outboxes[0].RelayOptions().LeaveUnknownChannels; got != want {
			t.Errorf("%s: got %v, want %v", sender, got, want)
		}
	}
}

func TestOptionsAreNamedAlikeEverywhere(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range Options() {
		if seen[o.Flag] {
			t.Errorf("--%s stands for two options", o.Flag)
		}
		seen[o.Flag] = true
		if o.Help == "" || !o.Bool && o.Placeholder == "" {
			t.Errorf("--%s lacks a help or a placeholder", o.Flag)
		}
	}
	for _, flag := range []string{"database", "tenant-column", "poll-interval", "backoff-cap", "pool-max-connections", "retention-enviado", "log-level", "http-address"} {
		if !seen[flag] {
			t.Errorf("there is no --%s among %v", flag, slices.Sorted(maps.Keys(seen)))
		}
	}
}

func TestFieldsOfTheLibraryAreKeysOfTheFile(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"Table.Name": "table", "Table.TenantColumn": "tenant_column", "Options.PollInterval": "poll_interval", "Options.ListenDSN": "listen_database",
		"Backoff.Cap": "backoff.cap", `Options.Channels["a.b"].Backoff.Base`: "channels.a.b.backoff.base", `Options.Channels["c"].MaxAttempts`: "channels.c.max_attempts",
		"MessageIDDomain": "message_id_domain", "AllowHTTP": "allow_http", "TLS": "tls", "CAFile": "ca_file", "apiKey": "api_key", "MissingTTL": "missing_ttl",
	} {
		if got := optionKey(field); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}
