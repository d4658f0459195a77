package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
)

// process is relay run as a process of its own.
type process struct {
	cmd   *exec.Cmd
	url   string // where it serves metrics and health
	ended chan error

	mu  sync.Mutex
	log []map[string]any // its lines on standard error
}

// startRelay runs the command with a configuration that serves one outbox in dsn, and waits until it serves HTTP.
func startRelay(t *testing.T, dsn, configuration string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "relay.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("relay") // TestMain put it there
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(path, "run", "--config", file), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), "DATABASE_URL="+dsn, "RELAY_HTTP_ADDRESS=127.0.0.1:0")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, read := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-read // which uses t
	})
	go func() {
		defer close(read)
		p.read(t, stderr, address)
		p.ended <- p.cmd.Wait()
	}()
	select {
	case a := <-address:
		p.url = "http://" + a
	case err := <-p.ended:
		t.Fatalf("relay run ended: %v, %v", err, p.lines())
	case <-time.After(patience):
		t.Fatalf("relay run did not serve HTTP within %v", patience)
	}
	return p
}

func (p *process) read(t *testing.T, stderr io.Reader, address chan<- string) {
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			t.Errorf("got %q on standard error, want JSON: it is no terminal", lines.Text())
			continue
		}
		p.mu.Lock()
		p.log = append(p.log, line)
		p.mu.Unlock()
		if line["msg"] == "serving metrics and health" {
			address <- line["address"].(string)
		}
	}
}

func (p *process) lines() []map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log
}

func (p *process) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	response, err := http.Get(p.url + path)
	if err != nil {
		t.Fatalf("%v; the process says %v", err, p.lines())
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// answers waits until a path has a status and a text.
func (p *process) answers(t *testing.T, path string, status int, text string) {
	t.Helper()
	var got int
	var body string
	if !waitfor.Within(patience, func() bool {
		got, body = p.get(t, path)
		return got == status && strings.Contains(body, text)
	}) {
		t.Fatalf("%s: got %d %q, want %d %q", path, got, body, status, text)
	}
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end waits for the end of the process and gives its state.
func (p *process) end(t *testing.T) *os.ProcessState {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("relay run did not end within %v", patience)
	}
	return p.cmd.ProcessState
}

// command runs a command line in this process and gives its exit code.
func command(ctx context.Context, args []string, env func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	return (&app{ctx: ctx, env: env, stdin: stdin, stdout: stdout, stderr: stderr}).main(args)
}

// environment has only DATABASE_URL.
func environment(dsn string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name == "DATABASE_URL" {
			return dsn, true
		}
		return "", false
	}
}

// migrated gives a database with an outbox and a session in it.
func migrated(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	if code := command(t.Context(), []string{"migrate"}, environment(dsn), nil, io.Discard, io.Discard); code != 0 {
		t.Fatalf("migrate: got exit code %d", code)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// insert adds a webhook that is due, with further columns and their values.
func insert(t *testing.T, conn *pgx.Conn, url, columns, values string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), "insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia"+columns+
		") values (gen_random_uuid(), 'webhook', $1, 'turno.creado', gen_random_uuid()::text"+values+")", url)
	if err != nil {
		t.Fatal(err)
	}
}

func wantState(t *testing.T, conn *pgx.Conn, want string) {
	t.Helper()
	var got string
	if err := conn.QueryRow(t.Context(), "select string_agg(estado, ' ') from outbox").Scan(&got); err != nil || got != want {
		t.Errorf("the messages are %q, %v, want %q", got, err, want)
	}
}

// webhooks is a configuration that sends to this host; more is added to its outbox.
func webhooks(more string) string {
	return `
outboxes:
  - name: turnos
    ` + more + `
    channels:
      webhook: {sender: webhook, development: true, secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw]}
`
}
