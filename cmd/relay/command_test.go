package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// output may be written while a test reads it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// environment has only DATABASE_URL.
func environment(dsn string) func(string) string {
	return func(name string) string {
		if name == "DATABASE_URL" {
			return dsn
		}
		return ""
	}
}

// commandLine runs a command line to its end.
func commandLine(t *testing.T, dsn, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs output
	code = command(t.Context(), strings.Fields(line), environment(dsn), &out, &errs)
	return code, out.String(), errs.String()
}

func TestWrongUsageExitsWithTwoAndSaysWhereToLook(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                              "name a command: migrate or run",
		"send":                          `unknown command "send"`,
		"--verbose":                     `unknown command "--verbose"`,
		"run now":                       `unexpected "now"`,
		"run --colour":                  "not defined: -colour",
		"migrate up down":               `unexpected "down"`,
		"migrate up --channels correo":  "not defined: -channels",
		"run --table":                   "flag needs an argument",
		"run --tenant-type int":         "Table.TenantType must be uuid or text",
		"migrate sideways":              `migrate knows up, down, status and print, not "sideways"`,
		"migrate sideways --table caja": `migrate knows up, down, status and print, not "sideways"`,
	} {
		code, stdout, stderr := commandLine(t, "", line)
		if code != 2 || !strings.Contains(stderr, want) || !strings.Contains(stderr, "see relay help") || stdout != "" {
			t.Errorf("relay %s: got exit %d, %q and %q, want exit 2 and %q", line, code, stdout, stderr, want)
		}
	}
}

func TestHelpExitsWithZero(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"help", "--help", "-h", "run --help", "migrate -h", "migrate up -h"} {
		code, stdout, stderr := commandLine(t, "", line)
		if code != 0 || stdout != usage || stderr != "" {
			t.Errorf("relay %s: got exit %d, %q and %q, want exit 0 and the usage", line, code, stdout, stderr)
		}
	}
}

func TestWhatCannotBeDoneExitsWithOneAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	empty := pgtest.Database(t)
	const away = "postgres://relay:s3cr3t@127.0.0.1:1/none?sslmode=disable"
	for _, test := range []struct{ dsn, line, want string }{
		{"", "run --channels correo", "DATABASE_URL is not set"},
		{"", "migrate", "DATABASE_URL is not set"},
		{"", "migrate status", "DATABASE_URL is not set"},
		{"postgres://relay:s3cr3t@host:port/none", "run --channels correo", "DATABASE_URL"},
		{"postgres://relay:s3cr3t@host:port/none", "migrate", "DATABASE_URL"},
		{away, "migrate", "DATABASE_URL"},
		{empty, "run --channels correo", "run relay migrate"},
	} {
		code, stdout, stderr := commandLine(t, test.dsn, test.line)
		if code != 1 || !strings.Contains(stderr, test.want) || stdout != "" {
			t.Errorf("relay %s: got exit %d, %q and %q, want exit 1 and %q", test.line, code, stdout, stderr, test.want)
		}
		if strings.Contains(stderr, "s3cr3t") {
			t.Errorf("relay %s: the password is in %q", test.line, stderr)
		}
	}
}

func TestMigrateGoesUpAndDownAndTellsTheVersion(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	const flags = " --schema negocio --table Salida --tenant-column cliente --tenant-type text"
	for _, step := range []struct{ line, want string }{
		{"migrate status" + flags, `"negocio"."Salida" is at version 0 of 4`},
		{"migrate" + flags, `"negocio"."Salida" is at version 4 of 4`},
		{"migrate up" + flags, `"negocio"."Salida" is at version 4 of 4`},
		{"migrate status" + flags, `"negocio"."Salida" is at version 4 of 4`},
		{"migrate status", `"public"."outbox" is at version 0 of 4`},
		{"migrate down" + flags, `"negocio"."Salida" is at version 0 of 4`},
		{"migrate status" + flags, `"negocio"."Salida" is at version 0 of 4`},
	} {
		code, stdout, stderr := commandLine(t, dsn, step.line)
		if code != 0 || strings.TrimSpace(stdout) != step.want || stderr != "" {
			t.Errorf("relay %s: got exit %d, %q and %q, want %q", step.line, code, stdout, stderr, step.want)
		}
	}
}

func TestMigratePrintNeedsNoDatabaseAndBuildsWhatUpBuilds(t *testing.T) {
	t.Parallel()
	code, script, stderr := commandLine(t, "", "migrate print --table caja")
	if code != 0 || stderr != "" {
		t.Fatalf("got exit %d and %q, want exit 0", code, stderr)
	}
	dsn := pgtest.Database(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, statement := range statements(script) {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if code, stdout, stderr := commandLine(t, dsn, "migrate status --table caja"); code != 0 || !strings.Contains(stdout, "version 4 of 4") {
		t.Errorf("got exit %d, %q and %q, want the newest version", code, stdout, stderr)
	}
}

// statements splits a script as psql does: an index that is built concurrently must be alone.
func statements(script string) (all []string) {
	for i, part := range strings.Split(script, "$outbox$") {
		if i%2 == 1 {
			all[len(all)-1] += "$outbox$" + part + "$outbox$"
			continue
		}
		pieces := strings.SplitAfter(part, ";\n")
		if i > 0 {
			all[len(all)-1] += pieces[0]
			pieces = pieces[1:]
		}
		all = append(all, pieces...)
	}
	return all
}

func TestRunPrintsMessagesOfItsChannelsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	if code, _, stderr := commandLine(t, dsn, "migrate"); code != 0 {
		t.Fatalf("migrate: got exit %d and %q", code, stderr)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout, stderr output
	ended := make(chan int, 1)
	go func() {
		ended <- command(ctx, []string{"run", "--channels", "correo, paloma"}, environment(dsn), &stdout, &stderr)
	}()
	_, err = conn.Exec(t.Context(), `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia)
		select gen_random_uuid(), canal, 'ana@example.com', 'aviso', canal from unnest(array['correo', 'whatsapp', 'paloma']) canal`)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(30 * time.Second)
	for n := 0; n < 2; {
		if err := conn.QueryRow(t.Context(), "select count(*) from outbox where estado = 'enviado'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		select {
		case <-deadline:
			t.Fatalf("%d messages are sent, want 2; standard error: %s", n, stderr.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	stop()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("got exit %d and %q, want 0", code, stderr.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("run did not end")
	}
	if got := strings.Count(stdout.String(), "\n"); got != 2 || !strings.Contains(stdout.String(), `"channel":"paloma"`) ||
		!strings.Contains(stdout.String(), `"channel":"correo"`) {
		t.Errorf("got %q, want a line for each of two messages", stdout.String())
	}
	var left string
	if err := conn.QueryRow(t.Context(), "select estado from outbox where canal = 'whatsapp'").Scan(&left); err != nil || left != "pendiente" {
		t.Errorf("the message of another channel is %q, %v, want pendiente", left, err)
	}
}
