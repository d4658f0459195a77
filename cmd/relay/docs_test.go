package main

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
)

// documents are those whose configurations and commands must be good as they stand.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	readmes, err := filepath.Glob("../../README*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range append(files, readmes...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// blocks are the fenced blocks of a language.
func blocks(text, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestConfigurationsInTheDocumentsAreGood(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range documents(t) {
		for _, block := range blocks(text, "yaml") {
			if !strings.Contains(block, "outboxes:") { // of something else, such as Kubernetes
				continue
			}
			n++
			if _, err := documented(t, block); err != nil {
				t.Errorf("%s: %v\n%s", name, err, block)
			}
		}
	}
	if n < 3 {
		t.Errorf("got %d configurations, want those of the README and docs/configuration.md", n)
	}
}

// A list of secrets and not one alone, each of which can sign.
func TestTheWebhookInTheDocumentSignsWithEachOfItsSecrets(t *testing.T) {
	t.Parallel()
	documents := documents(t)
	for _, block := range blocks(documents["configuration.md"], "yaml") {
		if !strings.Contains(block, "${WEBHOOK_SECRET}") {
			continue
		}
		conf, err := documented(t, block)
		if err != nil {
			t.Fatal(err)
		}
		o := conf.Outboxes[0]
		o.Database = "dbname=club"
		s, err := (&app{ctx: t.Context()}).prepare(conf, o, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		if got := len(o.Channels["webhook"].Options.(*config.Webhook).Secrets); got != 2 || s.senders["webhook"] == nil {
			t.Errorf("got %d secrets, want a sender with two", got)
		}
		return
	}
	t.Error("docs/configuration.md has no webhook with ${WEBHOOK_SECRET}")
}

// documented reads a configuration, with some content in place of each secret.
func documented(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	text = regexp.MustCompile(`file:/\S+`).ReplaceAllString(text, "file:"+filepath.Join(dir, "secret"))
	const secret = "postgres://relay@db/club"
	for name, content := range map[string]string{"relay.yaml": text, "secret": secret, "database": secret, "smtp": secret} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) {
		switch {
		case strings.HasPrefix(name, "RELAY_"):
			return "", false
		case name == "CREDENTIALS_DIRECTORY": // of systemd
			return dir, true
		case strings.HasPrefix(name, "WEBHOOK_SECRET"):
			return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true
		}
		return secret, true
	}
	return config.Load(config.Source{File: filepath.Join(dir, "relay.yaml"), Env: env})
}

// Each line that begins with relay, or hands something to it, runs as it stands, those of a document one after the other.
func TestCommandsInTheDocumentsRun(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range documents(t) {
		lines := commands(text)
		if len(lines) == 0 {
			continue
		}
		n += len(lines)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			for _, line := range lines {
				r.types(t, line)
			}
		})
	}
	if n < 10 {
		t.Errorf("got %d commands, want those of the READMEs and docs/operations.md", n)
	}
}

func TestCommandsWithinTheTextAreKnown(t *testing.T) {
	t.Parallel()
	for _, text := range documents(t) {
		for _, m := range regexp.MustCompile("`relay ([^`]*)`").FindAllStringSubmatch(text, -1) {
			wantCommand(t, strings.Fields(m[1])...)
		}
	}
}

func commands(text string) (lines []string) {
	for _, block := range blocks(text, "sh") {
		for _, line := range strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n") {
			if strings.HasPrefix(line, "relay ") || strings.Contains(line, "| relay ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// reader has what somebody needs to try the commands of a document: a folder with a relay.yaml, and a database.
type reader struct {
	dir  string
	env  []string
	conn *pgx.Conn
}

func newReader(t *testing.T) *reader {
	t.Helper()
	dsn := pgtest.Database(t)
	r := &reader{dir: t.TempDir(), conn: migrated(t, dsn), env: append(os.Environ(), "DATABASE_URL="+dsn, "RELAY_HTTP_ADDRESS=127.0.0.1:0")}
	conf := "outboxes: [{database: '${DATABASE_URL}', channels: {correo: {sender: print}}}]"
	if err := os.WriteFile(filepath.Join(r.dir, "relay.yaml"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// types runs a line, which must work. A relay must send a message before it is stopped.
func (r *reader) types(t *testing.T, line string) {
	t.Helper()
	if id, is := strings.CutPrefix(line, "relay show "); is {
		r.insert(t, strings.Fields(id)[0])
	}
	if !strings.HasPrefix(line, "relay run") {
		if err := shell(t, r.env, r.dir, line); err != nil {
			t.Error(err)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+line)
	var stderr bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stderr = r.env, r.dir, &stderr
	id := uuid.NewString()
	r.insert(t, id)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitfor.True(t, line+": a message that is enviado", func() bool {
		var state string
		err := r.conn.QueryRow(t.Context(), "select estado from outbox where id = $1", id).Scan(&state)
		return err == nil && state == "enviado"
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, &stderr)
	}
}

func (r *reader) insert(t *testing.T, id string) {
	t.Helper()
	_, err := r.conn.Exec(t.Context(), "insert into outbox (id, organizacion_id, canal, destino, plantilla, clave_idempotencia) "+
		"values ($1, gen_random_uuid(), 'correo', 'ana@example.com', 'bienvenida', 'bienvenida-ana')", id)
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryOptionStandsInTheDocument(t *testing.T) {
	t.Parallel()
	text := documents(t)["configuration.md"]
	for _, key := range config.Keys() {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("docs/configuration.md lacks `%s`", key)
		}
	}
}
