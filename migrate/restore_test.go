package migrate_test

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// filled gives a database with an outbox that has a message in each state.
func filled(t *testing.T, table outbox.Table) (conn *pgx.Conn, rows string) {
	t.Helper()
	conn = fresh(t)
	drizzle(t, conn, table, "")
	up(t, conn, table)
	return conn, rowsOf(t, conn, table)
}

// A restore empties the search_path, so that the trigger finds nothing by a bare name while COPY fires it.
func TestCopyWithAnEmptySearchPathFiresTheTrigger(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "App", Name: "Salida"}
	source, rows := filled(t, table)
	conn := fresh(t)
	up(t, conn, table)
	listener := beside(t, conn)
	exec(t, listener, "listen "+table.Channel())

	const columns = `(id, organizacion_id, canal, destino, plantilla, datos, clave_idempotencia, estado, intentos, max_intentos, programado_para,
		proximo_intento_en, bloqueado_hasta, ultimo_error_categoria, ultimo_error_codigo, id_externo, enviado_en, creado_en, actualizado_en)`
	file, err := os.CreateTemp(t.TempDir(), "rows")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := source.PgConn().CopyTo(t.Context(), file, "copy "+table.String()+" "+columns+" to stdout"); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "select pg_catalog.set_config('search_path', '', false)")
	if _, err := conn.PgConn().CopyFrom(t.Context(), file, "copy "+table.String()+" "+columns+" from stdin"); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, conn, table); got != rows {
		t.Errorf("got %s, want %s", got, rows)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, err := listener.WaitForNotification(ctx); err != nil || got.Channel != table.Channel() {
		t.Errorf("got %v, %v, want a notification", got, err)
	}
	complete(t, conn, table)
}

// The part above needs no program of Postgres's; this one is for where they are.
func TestDumpAndRestoreKeepTheOutboxWhole(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "App", Name: "Salida"}
	source, rows := filled(t, table)
	dump, restore := program(t, source, "pg_dump"), program(t, source, "pg_restore")
	if dump == "" || restore == "" {
		t.Log("no pg_dump as new as the server: only COPY is tested")
		return
	}
	archive := filepath.Join(t.TempDir(), "archive")
	shell(t, dump, "--format=custom", "--file="+archive, "--dbname="+source.Config().ConnString())

	whole := pgtest.Database(t)
	shell(t, restore, "--exit-on-error", "--no-owner", "--dbname="+whole, archive)
	conn := connect(t, whole)
	if got := rowsOf(t, conn, table); got != rows {
		t.Errorf("got %s, want %s", got, rows)
	}
	if got, want := catalog(t, conn, table), catalog(t, source, table); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	complete(t, conn, table)

	data := fresh(t)
	up(t, data, table)
	shell(t, restore, "--exit-on-error", "--data-only", "--schema=App", "--table=Salida", "--dbname="+data.Config().ConnString(), archive)
	if got := rowsOf(t, data, table); got != rows {
		t.Errorf("data only: got %s, want %s", got, rows)
	}
}

// program finds one of Postgres's own beside the server's or in PATH, unless it is older than the server and would refuse.
func program(t *testing.T, conn *pgx.Conn, name string) string {
	t.Helper()
	beside := filepath.Join(value[string](t, conn, "select setting from pg_config where name = 'BINDIR'"), name)
	server := value[int](t, conn, "select current_setting('server_version_num')::integer / 10000")
	for _, name := range []string{beside, name} {
		output, err := osexec.CommandContext(t.Context(), name, "--version").Output()
		if err != nil {
			continue
		}
		if major, _ := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(string(output))); major >= server {
			return name
		}
	}
	return ""
}

func shell(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := osexec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(name), err, output)
	}
}
