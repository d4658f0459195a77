package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	tenant      = "0b5f6d0e-6f0c-4c3a-9a43-0d1f6f4f7c11"
	otherTenant = "7d3c1a52-2b1e-4a57-8c0d-9b6a1e2f3d44"
)

// message is a valid message with this key.
func message(key string) outbox.Message {
	return outbox.Message{TenantID: tenant, Channel: "correo", Destination: "ana@example.com", Template: "turno.confirmado",
		IdempotencyKey: key}
}

// built gives a pool on a database that holds these tables.
func built(t testing.TB, tables ...outbox.Table) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	conn := connect(t, pool)
	for _, table := range tables {
		if err := migrate.Up(t.Context(), conn, table); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// connect gives a connection of its own to the pool's database.
func connect(t testing.TB, pool *pgxpool.Pool) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, db outbox.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%v in: %s", err, statement)
	}
}

// value gives the one value that a query finds.
func value[T any](t testing.TB, db outbox.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%v in: %s", err, query)
	}
	return v
}

// eventually waits until a query says true.
func eventually(t testing.TB, db outbox.DB, query string, args ...any) {
	t.Helper()
	waitfor.True(t, query, func() bool { return value[bool](t, db, query, args...) })
}

// somebodyWaits says whether a session of this database waits for a lock.
const somebodyWaits = `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`

// transaction is what the tests ask of an open one, whatever the driver.
type transaction struct {
	exec             func(statement string) error
	text             func(query string) (string, error)
	enqueue          func(outbox.Message) (outbox.Enqueued, error)
	commit, rollback func() error
}

// must fails the test when a statement does.
func (tx transaction) must(t testing.TB, statement string) {
	t.Helper()
	if err := tx.exec(statement); err != nil {
		t.Fatalf("%v in: %s", err, statement)
	}
}

// way is a way to a transaction: a driver and how it sends its queries.
type way struct {
	name  string
	begin func(testing.TB, *pgxpool.Pool, outbox.Table) transaction
}

// drivers are the ways that differ in what they say and return.
var drivers = []way{pgxWay(pgx.QueryExecModeCacheStatement), {"database/sql with pgx", beginStdlib}, {"database/sql with lib/pq", beginPq}}

// modes are the other ways of pgx.
var modes = []way{pgxWay(pgx.QueryExecModeCacheDescribe), pgxWay(pgx.QueryExecModeDescribeExec), pgxWay(pgx.QueryExecModeExec),
	pgxWay(pgx.QueryExecModeSimpleProtocol)}

func pgxWay(mode pgx.QueryExecMode) way {
	return way{"pgx, " + mode.String(), func(t testing.TB, pool *pgxpool.Pool, table outbox.Table) transaction {
		t.Helper()
		tx := beginPgx(t, pool, mode)
		return transaction{
			exec: func(statement string) error {
				_, err := tx.Exec(t.Context(), statement)
				return err
			},
			text: func(query string) (s string, err error) {
				return s, tx.QueryRow(t.Context(), query).Scan(&s)
			},
			enqueue:  func(m outbox.Message) (outbox.Enqueued, error) { return table.Enqueue(t.Context(), tx, m) },
			commit:   func() error { return tx.Commit(t.Context()) },
			rollback: func() error { return tx.Rollback(t.Context()) },
		}
	}}
}

func beginPgx(t testing.TB, pool *pgxpool.Pool, mode pgx.QueryExecMode) pgx.Tx {
	t.Helper()
	config := pool.Config().ConnConfig
	config.DefaultQueryExecMode = mode
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// begin is an ordinary transaction of pgx.
func begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	return beginPgx(t, pool, pgx.QueryExecModeCacheStatement)
}

func beginStdlib(t testing.TB, pool *pgxpool.Pool, table outbox.Table) transaction {
	t.Helper()
	return beginSQL(t, stdlib.OpenDB(*pool.Config().ConnConfig), table)
}

func beginPq(t testing.TB, pool *pgxpool.Pool, table outbox.Table) transaction {
	t.Helper()
	config := pool.Config().ConnConfig
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	dsn := fmt.Sprintf("host='%s' port=%d user='%s' password='%s' dbname='%s'", quote.Replace(config.Host), config.Port,
		quote.Replace(config.User), quote.Replace(config.Password), quote.Replace(config.Database))
	if config.TLSConfig == nil {
		dsn += " sslmode=disable"
	}
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return beginSQL(t, sql.OpenDB(connector), table)
}

func beginSQL(t testing.TB, db *sql.DB, table outbox.Table) transaction {
	t.Helper()
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return transaction{
		exec: func(statement string) error {
			_, err := tx.ExecContext(t.Context(), statement)
			return err
		},
		text: func(query string) (s string, err error) {
			return s, tx.QueryRowContext(t.Context(), query).Scan(&s)
		},
		enqueue:  func(m outbox.Message) (outbox.Enqueued, error) { return table.EnqueueSQL(t.Context(), tx, m) },
		commit:   tx.Commit,
		rollback: tx.Rollback,
	}
}

// mustEnqueue enqueues in a transaction of its own.
func mustEnqueue(t testing.TB, pool *pgxpool.Pool, table outbox.Table, ms ...outbox.Message) []outbox.Enqueued {
	t.Helper()
	var answers []outbox.Enqueued
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		answers, err = table.EnqueueMany(t.Context(), tx, ms)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// start runs f beside the test. A test that fails before the answer waits for it, since f uses what is closed then.
func start(t testing.TB, f func() error) <-chan error {
	t.Helper()
	answer, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		answer <- f()
	}()
	t.Cleanup(func() { <-ended })
	return answer
}

// refused fails the test unless err wraps want and names each of the words.
func refused(t testing.TB, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want it to say %q", err, word)
		}
	}
}
