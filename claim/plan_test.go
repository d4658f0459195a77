package claim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// A plan is made from statistics that may be old: those of an empty table, or of a first day on which every message was
// sent at once, when meanwhile a backlog has come and autovacuum has not. A plan that was cached believes them for ever.
func TestStatementsGoByTheIndexesWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	for name, history := range map[string]struct{ before, after, due string }{
		"none":                    {due: "1 hour ago"},
		"of an empty table":       {before: "vacuum analyze outbox", due: "1 hour ago"},
		"of a hundred sent":       {before: aHundredSent, due: "1 hour"}, // a claim must not read on through what is not due
		"of the backlog as it is": {after: "analyze outbox", due: "1 hour ago"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			store := migrated(t, pool)
			exec(t, pool, history.before)
			rows := addBacklog(t, pool, 30_000, history.due)
			exec(t, pool, history.after)
			checkPlans(t, pool, store, rows)
		})
	}
}

const aHundredSent = `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado)
	select gen_random_uuid(), 'correo', 'ana@example.com', 'aviso', 'old ' || n, 'enviado' from generate_series(1, 100) n;
	analyze outbox`

// A session keeps the plan that it made on its first day, when nothing was there.
func TestPlansMadeOnAnEmptyTableServeABacklog(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	store := migrated(t, pool)
	exec(t, pool, "vacuum analyze outbox")
	old, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Rollback(t.Context())
	for i, q := range store.questions(backlog{}) {
		prepareNamed(t, old, fmt.Sprint("old_", i), "force_generic_plan", q)
		explain(t, old, fmt.Sprint("old_", i), q)
	}
	rows := addBacklog(t, pool, 30_000, "1 hour ago")
	for i, q := range store.questions(rows) {
		checkPlan(t, q, explain(t, old, fmt.Sprint("old_", i), q))
	}
}

func checkPlans(t *testing.T, pool *pgxpool.Pool, store *Store, rows backlog) {
	t.Helper()
	for _, q := range store.questions(rows) {
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			q := q
			q.name += ", " + mode
			prepareNamed(t, tx, "statement", mode, q)
			checkPlan(t, q, explain(t, tx, "statement", q))
			if _, err := tx.Exec(t.Context(), "deallocate statement"); err != nil {
				t.Error(err)
			}
			_ = tx.Rollback(t.Context())
		}
	}
}

// explained is a statement of the store with the arguments for 20 rows, and the indexes that it may read.
type explained struct {
	name, statement, types string
	args                   []any
	indexes                []string
}

func (s *Store) questions(rows backlog) []explained {
	due, primary := strings.Trim(s.table.Names()["due_index"], `"`), "outbox_pkey"
	return []explained{
		{"take", s.take, "integer, interval, timestamptz, text[], interval", []any{20, "10 minutes", nil, nil, nil}, []string{due}},
		{"take only", s.takeOnly, "integer, interval, timestamptz, text[]", []any{20, "10 minutes", nil, nil}, []string{due}},
		{"next", s.next, "text[], interval, timestamptz", []any{nil, "5 seconds", nil}, []string{due}},
		{"take of channels", s.take, "integer, interval, timestamptz, text[], interval",
			[]any{20, "10 minutes", "2026-03-01T00:00:00Z", "{correo,whatsapp}", "5 seconds"}, []string{due}},
		{"take of what is not paused", s.takeUnpaused, "integer, interval, timestamptz, text[], interval",
			[]any{20, "10 minutes", nil, nil, "5 seconds"}, []string{due}},
		{"record", s.record, "uuid[], timestamptz[], text[], bigint[], text[], text[], text[], integer[]", rows.results(), []string{primary}},
		{"release", s.release, "uuid[], timestamptz[], interval", rows.releases(), []string{primary}},
	}
}

func checkPlan(t *testing.T, q explained, plan plan) {
	t.Helper()
	nodes, indexes := plan.Plan.all()
	if !slices.Equal(indexes, q.indexes) {
		t.Errorf("%s: got indexes %v, want %v", q.name, indexes, q.indexes)
	}
	for _, bad := range []string{"Seq Scan", "Sort", "Bitmap Heap Scan", "Hash Join", "Merge Join"} {
		if slices.Contains(nodes, bad) {
			t.Errorf("%s: the plan has a %s: %v", q.name, bad, nodes)
		}
	}
	if plan.JIT != nil {
		t.Errorf("%s: the plan is compiled: %s", q.name, plan.JIT)
	}
	// 20 rows: some pages of the index, and for each row its page and its new entries in three indexes.
	if got := plan.Plan.Hit + plan.Plan.Read; got > 1000 {
		t.Errorf("%s: it read %d pages, want at most 1000", q.name, got)
	}
}

type plan struct {
	Plan node            `json:"Plan"`
	JIT  json.RawMessage `json:"JIT"`
}

type node struct {
	Type     string `json:"Node Type"`
	Index    string `json:"Index Name"`
	Relation string `json:"Relation Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []node `json:"Plans"`
}

// all gives the kinds of the nodes from n on down, and the indexes that they read.
func (n node) all() (types, indexes []string) {
	types = []string{n.Type}
	if strings.HasPrefix(n.Relation, "outbox_pause_") {
		types = nil // a few rows, read as a whole
	}
	if n.Index != "" {
		indexes = []string{n.Index}
	}
	for _, below := range n.Plans {
		t, i := below.all()
		types, indexes = append(types, t...), append(indexes, i...)
	}
	slices.Sort(indexes)
	return types, slices.Compact(indexes)
}

func migrated(t *testing.T, pool *pgxpool.Pool) *Store {
	t.Helper()
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "alter table outbox set (autovacuum_enabled = false)")
	store, _, err := Open(t.Context(), pool, outbox.Table{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// backlog is some of the rows, claimed.
type backlog struct {
	ids    []uuid.UUID
	leases []time.Time
}

// addBacklog writes n rows that fall due an interval from now, a few of them under a lease.
func addBacklog(t *testing.T, pool *pgxpool.Pool, n int, due string) (claimed backlog) {
	t.Helper()
	exec(t, pool, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado, bloqueado_hasta,
			programado_para)
		select gen_random_uuid(), 'correo', 'ana@example.com', 'aviso', n::text,
			case when n % ($1 / 20) = 0 then 'procesando' else 'pendiente' end, now() + interval '1 hour', now() + $2::interval
		from generate_series(1, $1::integer) n`, n, due)
	rows, err := pool.Query(t.Context(), "select id, bloqueado_hasta from outbox where estado = 'procesando'")
	if err != nil {
		t.Fatal(err)
	}
	var id uuid.UUID
	var lease time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &lease}, func() error {
		claimed.ids, claimed.leases = append(claimed.ids, id), append(claimed.leases, lease)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

func (b backlog) results() []any {
	states, waits, texts := make([]string, len(b.ids)), make([]*int64, len(b.ids)), make([]*string, len(b.ids))
	for i := range states {
		states[i] = "enviado"
	}
	return []any{b.ids, b.leases, states, waits, texts, texts, texts, make([]int32, len(b.ids))}
}

func (b backlog) releases() []any { return []any{b.ids, b.leases, "1 hour"} }

// prepareNamed makes a statement as planned does, behind planner.sql.
func prepareNamed(t *testing.T, tx pgx.Tx, name, mode string, q explained) {
	t.Helper()
	for _, s := range []string{
		"set local plan_cache_mode = " + mode,
		"set local jit_above_cost = 0", // whatever the plan's estimate
		plannerSQL,
		fmt.Sprintf("prepare %s (%s) as %s", name, q.types, q.statement),
	} {
		if _, err := tx.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// explain runs a prepared statement and takes back what it did.
func explain(t *testing.T, tx pgx.Tx, name string, q explained) plan {
	t.Helper()
	literals := make([]string, len(q.args))
	for i, typ := range strings.Split(q.types, ", ") {
		if err := tx.QueryRow(t.Context(), "select quote_nullable($1::"+typ+"::text)", q.args[i]).Scan(&literals[i]); err != nil {
			t.Fatal(err)
		}
	}
	inner, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Rollback(t.Context())
	var plans []plan
	err = inner.QueryRow(t.Context(), "explain (analyze, buffers, format json) execute "+name+" ("+strings.Join(literals, ", ")+")").Scan(&plans)
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}
