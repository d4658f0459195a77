package claim_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const lease = time.Minute

// fields are columns of a row with the SQL of their values.
type fields map[string]string

// fixture is an outbox in a database of the test's own.
type fixture struct {
	*claim.Store
	pool  *pgxpool.Pool
	table outbox.Table
	// session takes, if there is one, instead of the pool.
	session *claim.Session
}

func open(t *testing.T) fixture { return openTable(t, outbox.Table{}) }

func openTable(t *testing.T, table outbox.Table) fixture {
	t.Helper()
	pool := pgtest.Pool(t)
	migrateTable(t, pool, table)
	store, _, err := claim.Open(t.Context(), pool, table)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{Store: store, pool: pool, table: table}
}

func migrateTable(t *testing.T, pool *pgxpool.Pool, table outbox.Table) {
	t.Helper()
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), table) })
	if err != nil {
		t.Fatal(err)
	}
}

func (f fixture) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := f.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// add inserts a row that is due, but for what fields say, and gives its id.
func (f fixture) add(t *testing.T, with fields) string {
	t.Helper()
	all := fields{
		f.table.Names()["tenant"]: "'6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f'", "canal": "'correo'", "destino": "'ana@example.com'",
		"plantilla": "'aviso'", "clave_idempotencia": "gen_random_uuid()::text",
	}
	maps.Copy(all, with)
	names := slices.Sorted(maps.Keys(all))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = all[name]
	}
	var id string
	err := f.pool.QueryRow(t.Context(), "insert into "+f.table.String()+" ("+strings.Join(names, ", ")+") values ("+
		strings.Join(values, ", ")+") returning id::text").Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// wantRow checks a condition on a row.
func (f fixture) wantRow(t *testing.T, id, condition string) {
	t.Helper()
	var holds *bool
	var row string
	err := f.pool.QueryRow(t.Context(), "select "+condition+", to_jsonb(o)::text from "+f.table.String()+" o where id = $1::uuid", id).Scan(&holds, &row)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	if holds == nil || !*holds {
		t.Errorf("got %s, want %s", row, condition)
	}
}

// whole gives a row as text, to see whether anything in it changes.
func (f fixture) whole(t *testing.T, id string) string {
	t.Helper()
	var row string
	err := f.pool.QueryRow(t.Context(), "select coalesce((select to_jsonb(o)::text from "+f.table.String()+" o where id = $1::uuid), 'none')", id).Scan(&row)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func (f fixture) take(t *testing.T, limit int) *claim.Batch {
	t.Helper()
	return f.ask(t, claim.Ask{Limit: limit, Lease: lease})
}

func (f fixture) ask(t *testing.T, ask claim.Ask) *claim.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a claim that waits for a lock would wait for ever
	defer cancel()
	var b *claim.Batch
	var err error
	if f.session != nil {
		b, err = f.session.Take(ctx, ask, func(*claim.Batch) {})
	} else {
		b, err = f.Take(ctx, ask)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eachWay runs a test on a pool and on a session, each on a table of its own.
func eachWay(t *testing.T, test func(*testing.T, fixture)) {
	t.Parallel()
	t.Run("on the pool", func(t *testing.T) {
		t.Parallel()
		test(t, open(t))
	})
	t.Run("on a session", func(t *testing.T) {
		t.Parallel()
		f := open(t)
		f.session = f.open(t, false)
		test(t, f)
	})
}

// open gives a session whose statements have the longest limit. It is closed with the test.
func (f fixture) open(t *testing.T, durable bool) *claim.Session {
	t.Helper()
	return f.openLimited(t, durable, 5*time.Second)
}

func (f fixture) openLimited(t *testing.T, durable bool, limit time.Duration) *claim.Session {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), f.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	session, err := f.NewSession(t.Context(), conn, durable, limit)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// takeOne claims the only row that is due.
func (f fixture) takeOne(t *testing.T) *claim.Row {
	t.Helper()
	b := f.take(t, 10)
	if len(b.Rows) != 1 {
		t.Fatalf("claimed %d rows, want 1", len(b.Rows))
	}
	return b.Rows[0]
}

func ids(rows []*claim.Row) []string {
	var all []string
	for _, r := range rows {
		all = append(all, id(r))
	}
	return all
}

func id(r *claim.Row) string { return uuid.UUID(r.ID).String() }

// hold runs a statement in a transaction that stays open until letGo, or the end of the test.
func (f fixture) hold(t *testing.T, statement string) (letGo func()) {
	t.Helper()
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	letGo = func() {
		if err := tx.Rollback(context.Background()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Error(err)
		}
	}
	t.Cleanup(letGo)
	if _, err := tx.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	return letGo
}
