package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
)

func TestMain(m *testing.M) { Main(m) }

func TestEachParallelTestHasAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if _, err := Pool(t).Exec(t.Context(), "create table same_name (n integer)"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNotificationsStayInTheirDatabase(t *testing.T) {
	t.Parallel()
	here, elsewhere := Pool(t), Pool(t)
	listener, err := here.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(t.Context(), "listen bell"); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere.Exec(t.Context(), "notify bell, 'elsewhere'"); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Exec(t.Context(), "notify bell, 'here'"); err != nil {
		t.Fatal(err)
	}
	got, err := listener.Conn().WaitForNotification(t.Context())
	if err != nil || got.Payload != "here" {
		t.Fatalf("got %v, %v, want the payload here", got, err)
	}
}

func TestDatabaseIsDroppedAfterItsTest(t *testing.T) {
	t.Parallel()
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = Database(t)
		if _, err := pgx.Connect(t.Context(), dsn); err != nil { // and left open
			t.Fatal(err)
		}
	})
	_, err := pgx.Connect(t.Context(), dsn)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "3D000" {
		t.Errorf("got %v, want 3D000: the database does not exist", err)
	}
}

func TestPoolReportsConnectionsThatAreStillOut(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var reported recorder
	closePool(&reported, pool, time.Millisecond)
	conn.Release()
	if !strings.Contains(string(reported.message), "1 connections") {
		t.Errorf("got %q, want a complaint about one connection", reported.message)
	}
}

type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Errorf(format string, args ...any) { r.message = fmt.Sprintf(format, args...) }

func TestServerIsPrivateEvenWithADatabaseURL(t *testing.T) {
	t.Setenv("DATABASE_URL", Database(t))
	server := Server(t, localpg.Options{Settings: map[string]string{"max_connections": "20"}})
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var connections, autovacuum string
	if err := conn.QueryRow(t.Context(), "select current_setting('max_connections'), current_setting('autovacuum')").
		Scan(&connections, &autovacuum); err != nil {
		t.Fatal(err)
	}
	if connections != "20" || autovacuum != "off" {
		t.Errorf("got max_connections %s, autovacuum %s, want the test's 20 and the usual off", connections, autovacuum)
	}
}

func TestDatabaseURLIsUsedAndKeptRunning(t *testing.T) {
	t.Setenv("DATABASE_URL", Server(t, localpg.Options{}).DSN())
	var l lazyServer
	server, err := l.get()
	if err != nil {
		t.Fatal(err)
	}
	if server.DSN() != os.Getenv("DATABASE_URL") {
		t.Errorf("got %s, want DATABASE_URL", server.DSN())
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	_, drop, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatalf("the server was stopped: %v", err)
	}
	if err := drop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A second run of this binary cannot start a server.
func TestMissingPostgresFailsOnlyTheTestsThatNeedOne(t *testing.T) {
	t.Parallel()
	for pattern, wantFailed := range map[string]bool{"^TestDatabaseIsDropped": true, "^TestNothing": false} {
		cmd := exec.Command(os.Args[0], "-test.run", pattern, "-test.v")
		cmd.Env = append(os.Environ(), "DATABASE_URL=", "OUTBOX_PG_BIN="+filepath.Join(t.TempDir(), "none"))
		output, err := cmd.CombinedOutput()
		_, failed := errors.AsType[*exec.ExitError](err)
		if failed != wantFailed || strings.Contains(string(output), "SKIP") {
			t.Errorf("-run %s: got %v, want failure %v and no skip:\n%s", pattern, err, wantFailed, output)
		}
	}
}
