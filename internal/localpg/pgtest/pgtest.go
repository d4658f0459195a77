// Package pgtest gives tests a real Postgres: one server for a test binary, one empty database for a test.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestClaim(t *testing.T) {
//		t.Parallel()
//		pool := pgtest.Pool(t)
//		...
//
// The server starts with the first test that asks for a database: localpg's, else a container's. A test that gets none
// fails; it is not skipped.
package pgtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
)

// shared is made by Main: only TestMain knows when all tests have ended.
var shared *lazyServer

// Main runs a package's tests, stops the server if one was started, and exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for those who have something to do before they exit with its code.
func Run(m *testing.M) (code int) {
	shared = new(lazyServer)
	code = m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	return code
}

// Database gives the DSN of an empty database. After the test it is dropped, with the sessions that are still in it.
func Database(t testing.TB) string {
	t.Helper()
	if shared == nil {
		t.Fatal("pgtest: this package needs: func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	server, err := shared.get()
	if err != nil {
		t.Fatal(err)
	}
	dsn, drop, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for range 3 { // the server waits five seconds for sessions to end
			if err = drop(ctx); err == nil {
				return
			}
		}
		t.Error(err)
	})
	return dsn
}

// Pool gives a pool on a database of its own. It is closed after the test, which fails when a connection is still out.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return PoolOn(t, Database(t), nil)
}

// PoolOn is Pool on a database that is there. change, which may be nil, may change how it connects.
func PoolOn(t testing.TB, dsn string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closePool(t, pool, 30*time.Second) })
	return pool
}

// closePool bounds pool.Close, which waits for connections that a failed test may never give back.
func closePool(t testing.TB, pool *pgxpool.Pool, limit time.Duration) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(limit):
		t.Errorf("%d connections were not given back to the pool", pool.Stat().AcquiredConns())
	}
}

// Server gives a server of the test's own, to be stopped, killed and restarted; also when DATABASE_URL is set. It needs
// installed binaries: a container's server cannot be treated so.
func Server(t testing.TB, opts localpg.Options) *localpg.Server {
	t.Helper()
	opts.Private = true
	settings := serverSettings()
	maps.Copy(settings, opts.Settings)
	opts.Settings = settings
	server, err := localpg.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func serverSettings() map[string]string {
	return map[string]string{"max_connections": "300", "autovacuum": "off"}
}
