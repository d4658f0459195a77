package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

// anyLanguage is the document whose snippets are tested here.
const anyLanguage = "enqueue-from-any-language.md"

// languages are those of the document, by the name of their blocks. A snippet runs where the interpreter and the driver are.
var languages = map[string]struct {
	file         string
	has, execute string // shell commands; $FILE is the snippet's
}{
	"bash":   {"enqueue.sh", "psql --version", "bash $FILE"},
	"js":     {"enqueue.js", `node -e 'require("pg")'`, "node $FILE"},
	"python": {"enqueue.py", "$PYTHON -c 'import psycopg'", "$PYTHON $FILE"},
	"java":   {"Enqueue.java", "java --version && test -f $JDBC_JAR && test -n \"$JDBC_URL\"", "java -cp $JDBC_JAR $FILE"},
	"ruby":   {"enqueue.rb", `ruby -e 'require "pg"'`, "ruby $FILE"},
	"php":    {"enqueue.php", `php -r 'exit(extension_loaded("pdo_pgsql") ? 0 : 1);'`, "php $FILE"},
	"go":     {"enqueue.go", "go version", "go run $FILE"},
}

func TestSnippetsOfAllLanguagesEnqueueOnce(t *testing.T) {
	t.Parallel()
	text := documents(t)[anyLanguage]
	for name, language := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snippets := blocks(text, name)
			if len(snippets) != 1 {
				t.Fatalf("got %d snippets, want 1", len(snippets))
			}
			dsn := pgtest.Database(t)
			conn := booked(t, dsn)
			file := filepath.Join(t.TempDir(), language.file)
			if err := os.WriteFile(file, []byte(snippets[0]), 0o600); err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), drivers(t, dsn)...)
			env = append(env, "DATABASE_URL="+dsn, "FILE="+file)
			if shell(t, env, "", language.has) != nil {
				t.Log("without interpreter or driver: only its SQL is tested")
				prepare(t, conn, snippets[0])
				return
			}
			for range 2 { // the second time changes nothing
				if err := shell(t, env, "", language.execute); err != nil {
					t.Fatal(err)
				}
			}
			wantConfirmed(t, conn)
		})
	}
}

// drivers is the environment of the languages whose drivers take no DATABASE_URL, or which are not the first of their name.
func drivers(t *testing.T, dsn string) []string {
	t.Helper()
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"PYTHON=" + cmp.Or(os.Getenv("PYTHON"), "/usr/bin/python3"), // the system's, which has the system's psycopg
		"JDBC_JAR=" + cmp.Or(os.Getenv("JDBC_JAR"), "/usr/share/java/postgresql.jar"),
		"PDO_DSN=" + fmt.Sprintf("pgsql:host=%s;port=%d;dbname=%s;user=%s;password=%s", conf.Host, conf.Port, conf.Database, conf.User, conf.Password),
	}
	if !strings.HasPrefix(conf.Host, "/") { // Java has no sockets of the file system
		query := url.Values{"user": {conf.User}, "password": {conf.Password}}
		env = append(env, fmt.Sprintf("JDBC_URL=jdbc:postgresql://%s:%d/%s?%s", conf.Host, conf.Port, conf.Database, query.Encode()))
	}
	return env
}

// shell runs a command line in a folder, "" for this one.
func shell(t *testing.T, env []string, dir, line string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Env, cmd.Dir = env, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return nil
}

// booked gives a database with an outbox and the appointment of the snippets.
func booked(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn := migrated(t, dsn)
	_, err := conn.Exec(t.Context(), `
		create table turnos (id bigint, organizacion_id uuid, nombre text, correo text, inicio timestamptz, confirmado boolean not null default false);
		insert into turnos values (123, '3f1b6a52-9c0e-4a7c-8f0d-2b9f5f1f7a10', 'Ana', 'ana@example.com', now() + interval '2 days')`)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func wantConfirmed(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var got string
	err := conn.QueryRow(t.Context(), `
		select concat_ws(' ', confirmado, o.organizacion_id, canal, destino, plantilla, datos, clave_idempotencia, estado)
		from turnos left join outbox o on true`).Scan(&got)
	want := `t 3f1b6a52-9c0e-4a7c-8f0d-2b9f5f1f7a10 correo ana@example.com turno_confirmado {"hora": "10:00", "nombre": "Ana"} turno-123-confirmado pendiente`
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	var n int
	if err := conn.QueryRow(t.Context(), "select count(*) from outbox").Scan(&n); err != nil || n != 1 {
		t.Errorf("got %d messages, %v, want 1", n, err)
	}
}

var (
	statement   = regexp.MustCompile(`(?s)insert into outbox.*?do nothing`)
	placeholder = regexp.MustCompile(`%s|\?|:'\w+'`)
)

// prepare has the server check the insert of a snippet.
func prepare(t *testing.T, conn *pgx.Conn, snippet string) {
	t.Helper()
	n := 0
	sql := placeholder.ReplaceAllStringFunc(statement.FindString(snippet), func(p string) string {
		if p[0] == ':' { // psql writes a text in its place
			return "'x'"
		}
		n++
		return fmt.Sprintf("$%d", n)
	})
	if _, err := conn.Prepare(t.Context(), "", sql); err != nil {
		t.Errorf("%v in\n%s", err, sql)
	}
	if !strings.HasPrefix(sql, "insert") {
		t.Errorf("no insert in\n%s", snippet)
	}
}

// Every block of SQL in the documents runs, in the order in which it stands there, as the table's owner.
func TestSQLInTheDocumentsRuns(t *testing.T) {
	t.Parallel()
	for name, text := range documents(t) {
		snippets := blocks(text, "sql")
		if len(snippets) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := booked(t, pgtest.Database(t))
			for _, snippet := range snippets {
				// Roles are of the whole server, and other tests have theirs.
				snippet = regexp.MustCompile(`to (relay|aplicacion);`).ReplaceAllString(snippet, "to current_user;")
				if _, err := conn.Exec(t.Context(), snippet); err != nil {
					t.Errorf("%v in\n%s", err, snippet)
				}
			}
			if name == anyLanguage {
				var n int
				if err := conn.QueryRow(t.Context(), "select count(*) from outbox where programado_para > now() + interval '23 hours' or clave_idempotencia = 'turno-123-confirmado'").Scan(&n); err != nil || n != 2 {
					t.Errorf("got %d messages, %v, want the confirmation and the reminder", n, err)
				}
			}
		})
	}
}
