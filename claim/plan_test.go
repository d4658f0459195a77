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

func checkPlans(t *testing.T, pool *pgxpool.Pool, store *Store, rows backlog) {
	t.Helper()
	due, primary := strings.Trim(store.table.Names()["due_index"], `"`), "outbox_pkey"
	for _, test := range []struct {
		name, statement, types string
		args                   []any
		indexes                []string
	}{
		{"take", store.take, "integer, interval, timestamptz, text[], interval", []any{20, "10 minutes", nil, nil, nil}, []string{due, primary}},
		{"take of channels", store.take, "integer, interval, timestamptz, text[], interval",
			[]any{20, "10 minutes", "2026-03-01T00:00:00Z", "{correo,whatsapp}", "5 seconds"}, []string{due, primary}},
		{"record", store.record, "uuid[], timestamptz[], text[], bigint[], text[], text[], text[], integer[]", rows.results(), []string{primary}},
		{"release", store.release, "uuid[], timestamptz[], interval", rows.releases(), []string{primary}},
	} {
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			plan := explain(t, pool, mode, test.statement, test.types, test.args)
			nodes, indexes := plan.Plan.all()
			if !slices.Equal(indexes, test.indexes) {
				t.Errorf("%s, %s: got indexes %v, want %v", test.name, mode, indexes, test.indexes)
			}
			for _, bad := range []string{"Seq Scan", "Sort", "Bitmap Heap Scan", "Hash Join", "Merge Join"} {
				if slices.Contains(nodes, bad) {
					t.Errorf("%s, %s: the plan has a %s: %v", test.name, mode, bad, nodes)
				}
			}
			if plan.JIT != nil {
				t.Errorf("%s, %s: the plan is compiled: %s", test.name, mode, plan.JIT)
			}
			// 20 rows: some pages of the index, and for each row its page and its new entries in three indexes.
			if got := plan.Plan.Hit + plan.Plan.Read; got > 1000 {
				t.Errorf("%s, %s: it read %d pages, want at most 1000", test.name, mode, got)
			}
		}
	}
}

type plan struct {
	Plan node            `json:"Plan"`
	JIT  json.RawMessage `json:"JIT"`
}

type node struct {
	Type  string `json:"Node Type"`
	Index string `json:"Index Name"`
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []node `json:"Plans"`
}

// all gives the kinds of the nodes from n on down, and the indexes that they read.
func (n node) all() (types, indexes []string) {
	types = []string{n.Type}
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

// explain runs a statement as planned does, behind planner.sql, and takes it back.
func explain(t *testing.T, pool *pgxpool.Pool, mode, statement, types string, args []any) plan {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	literals := make([]string, len(args))
	for i, typ := range strings.Split(types, ", ") {
		if err := tx.QueryRow(t.Context(), "select quote_nullable($1::"+typ+"::text)", args[i]).Scan(&literals[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{
		"set local plan_cache_mode = " + mode,
		"set local jit_above_cost = 0", // whatever the plan's estimate
		plannerSQL,
		fmt.Sprintf("prepare statement (%s) as %s", types, statement),
	} {
		if _, err := tx.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	var plans []plan
	err = tx.QueryRow(t.Context(), "explain (analyze, buffers, format json) execute statement ("+strings.Join(literals, ", ")+")").Scan(&plans)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "deallocate statement"); err != nil {
		t.Fatal(err)
	}
	return plans[0]
}
