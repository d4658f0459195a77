package doctor_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestAPoolerInTransactionModeIsFoundOut(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	through := pgtest.PoolOn(t, p.dsn, newPooler(t, p.dsn).dial)
	p.opts.Timeout = 40 * time.Second // of which it listens for 16, and eight for each question
	r := p.through(t, through)
	p.opts.Timeout = patience
	f := p.suffers(t, r, "listen-silent", "pooler-statements")
	if f.Severity != doctor.Broken || !strings.Contains(f.Mend, "ListenDSN") {
		t.Errorf("got %+v, want it broken and ListenDSN named", f)
	}
	// As both findings say.
	p.opts.ListenDSN = p.dsn
	plain := pgtest.PoolOn(t, p.dsn, func(c *pgxpool.Config) {
		c.ConnConfig = through.Config().ConnConfig
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	})
	r = p.through(t, plain)
	p.recovers(t, r)
	if f := one(t, r, "pooler"); !strings.Contains(f.What, "transaction mode") {
		t.Errorf("got %q, want that the pool still goes through it", f.What)
	}
}

func TestListeningInAnotherDatabaseIsFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.opts.ListenDSN = pgtest.Database(t)
	f := p.suffers(t, p.examine(t), "listen-elsewhere")
	for _, dsn := range []string{p.dsn, p.opts.ListenDSN} {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.What, config.Database) {
			t.Errorf("got %q, want it to name %s", f.What, config.Database)
		}
	}
	p.opts.ListenDSN = p.dsn
	p.recovers(t, p.examine(t))
}

func TestListeningOnAnotherServerIsFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	server := pgtest.Server(t, localpg.Options{})
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	database := p.Config().ConnConfig.Database
	if _, err := conn.Exec(t.Context(), "create database "+database); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	p.opts.ListenDSN = u.String()
	p.suffers(t, p.examine(t), "listen-elsewhere")
}

func TestAListenerThatCannotConnectIsFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.opts.ListenDSN = "postgres://relay:s3cr3t@127.0.0.1:1/none?sslmode=disable"
	r := p.examine(t)
	p.suffers(t, r, "listen-connection")
	if strings.Contains(text(t, r), "s3cr3t") {
		t.Errorf("the password is in %s", text(t, r))
	}
}

// A server that waits for WAL which nobody sends is a standby, and one that was promoted is none.
func TestAStandbyIsFound(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, localpg.Options{})
	dsn, _, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newPatientIn(t, dsn, outbox.Table{})
	var data string
	if err := p.QueryRow(t.Context(), "show data_directory").Scan(&data); err != nil {
		t.Fatal(err)
	}
	if err := server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	signal := filepath.Join(data, "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(signal, 0o666); err != nil { // the server's account is another one
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Reset()
	p.suffers(t, p.examine(t), "standby", "listen-refused")
	p.exec(t, "select pg_promote()")
	p.recovers(t, p.examine(t))
}
