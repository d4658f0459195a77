package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// cut is the time before which the tests purge.
var cut = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fill adds n rows in a state that were last touched at a time.
func fill(t testing.TB, pool *pgxpool.Pool, n int, state string, at time.Time) {
	t.Helper()
	exec(t, pool, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado, bloqueado_hasta, actualizado_en, datos)
		select $1::uuid, 'correo', 'ana@example.com', 'turno', gen_random_uuid(), $2::text, case when $2 = 'procesando' then now() + interval '1 hour' end,
			$3::timestamptz, jsonb_build_object('s', repeat('x', 100))
		from generate_series(1, $4::integer)`, tenant, state, at, n)
}

// left counts the rows of each state.
func left(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return value[string](t, pool, `select coalesce(string_agg(estado || ' ' || n, ', ' order by estado), 'none')
		from (select estado, count(*) as n from outbox group by estado) s`)
}

func TestPurgeDeletesOnlyTheStatesItIsGivenThatAreStrictlyOlder(t *testing.T) {
	t.Parallel()
	const all = "descartado 3, enviado 3, fallido 3, pendiente 3, procesando 3"
	tests := []struct {
		states  []outbox.State
		deleted int64
		left    string
	}{
		{nil, 3, "descartado 2, enviado 2, fallido 2, pendiente 3, procesando 3"},
		{[]outbox.State{outbox.Sent}, 1, "descartado 3, enviado 2, fallido 3, pendiente 3, procesando 3"},
		{[]outbox.State{outbox.Failed, outbox.Discarded}, 2, "descartado 2, enviado 3, fallido 2, pendiente 3, procesando 3"},
	}
	pool := built(t, outbox.Table{})
	for _, test := range tests {
		exec(t, pool, "truncate outbox")
		for _, state := range []string{"pendiente", "procesando", "enviado", "fallido", "descartado"} {
			for _, at := range []time.Time{cut.Add(-time.Microsecond), cut, cut.Add(time.Microsecond)} {
				fill(t, pool, 1, state, at)
			}
		}
		if got := left(t, pool); got != all {
			t.Fatalf("got %s, want %s", got, all)
		}
		deleted, err := outbox.Table{}.Purge(t.Context(), pool, cut, test.states...)
		if err != nil || deleted != test.deleted {
			t.Errorf("%v: got %d, %v, want %d", test.states, deleted, err, test.deleted)
		}
		if got := left(t, pool); got != test.left {
			t.Errorf("%v: got %s, want %s", test.states, got, test.left)
		}
	}
}

func TestPurgeRefusesStatesThatAreNotFinishedAndNoTime(t *testing.T) {
	t.Parallel()
	var table outbox.Table
	for _, state := range []outbox.State{outbox.Pending, outbox.Processing, "pausado", ""} {
		_, err := table.Purge(t.Context(), nil, cut, outbox.Sent, state)
		refused(t, err, outbox.ErrInvalidOptions, fmt.Sprintf("%q", state))
	}
	_, err := table.Purge(t.Context(), nil, time.Time{})
	refused(t, err, outbox.ErrInvalidOptions, "time")
	_, err = outbox.Table{Name: "a\x00"}.Purge(t.Context(), nil, cut)
	refused(t, err, outbox.ErrInvalidOptions, "Table.Name")
}

func TestPurgeSaysThatThereIsNoTable(t *testing.T) {
	t.Parallel()
	_, err := outbox.Table{}.Purge(t.Context(), built(t), cut)
	refused(t, err, outbox.ErrSchema, "relay migrate")
}

// statements counts what a purge asks and calls before each question.
type statements struct {
	*pgxpool.Pool
	deletes int
	before  func(deletes int)
}

func (s *statements) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	s.deletes++
	if s.before != nil {
		s.before(s.deletes)
	}
	return s.Pool.Exec(ctx, statement, args...)
}

func TestPurgeDeletesThousandsInSmallTransactions(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	fill(t, pool, 9000, "enviado", cut.Add(-time.Hour))
	fill(t, pool, 1000, "pendiente", cut.Add(-time.Hour))
	fill(t, pool, 2000, "fallido", cut.Add(-time.Hour))
	db := &statements{Pool: pool}
	if deleted, err := (outbox.Table{}).Purge(t.Context(), db, cut); err != nil || deleted != 11000 {
		t.Errorf("got %d, %v, want 11000", deleted, err)
	}
	if got := left(t, pool); got != "pendiente 1000" {
		t.Errorf("got %s, want pendiente 1000", got)
	}
	if db.deletes < 3 || db.deletes > 60 {
		t.Errorf("got %d statements, want some for 12,000 rows, each of about a thousand", db.deletes)
	}
}

func TestPurgeThatIsCutKeepsWhatItDeletedAndCountsIt(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	fill(t, pool, 6000, "enviado", cut.Add(-time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	db := &statements{Pool: pool, before: func(deletes int) {
		if deletes == 3 {
			cancel()
		}
	}}
	deleted, err := outbox.Table{}.Purge(ctx, db, cut)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), fmt.Sprintf("deleted=%d", deleted)) {
		t.Errorf("got %v, want the end of the context with the count", err)
	}
	if got := value[int64](t, pool, "select count(*) from outbox"); deleted <= 0 || got != 6000-deleted {
		t.Errorf("got %d rows left and %d deleted, want some deleted and 6000 in all", got, deleted)
	}
}

func TestTwoPurgesAtOnceCountEachMessageOnce(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	fill(t, pool, 8000, "descartado", cut.Add(-time.Hour))
	fill(t, pool, 10, "enviado", cut)
	var deleted [2]int64
	var done []<-chan error
	for i := range deleted {
		done = append(done, start(t, func() (err error) {
			deleted[i], err = outbox.Table{}.Purge(t.Context(), pool, cut)
			return err
		}))
	}
	for _, answer := range done {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	// What one had locked, the other passed over; the first deleted it.
	if got := left(t, pool); deleted[0]+deleted[1] != 8000 || got != "enviado 10" {
		t.Errorf("got %d deleted and %s left, want 8000 in all and enviado 10", deleted, got)
	}
}

func TestPurgePassesOverLockedRows(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	fill(t, pool, 100, "enviado", cut.Add(-time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a purge that waits for the person would wait for ever
	defer cancel()
	person := begin(t, pool)
	exec(t, person, "select from outbox limit 7 for update")
	if deleted, err := (outbox.Table{}).Purge(ctx, pool, cut); err != nil || deleted != 93 {
		t.Errorf("got %d, %v, want 93", deleted, err)
	}
	if err := person.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if deleted, err := (outbox.Table{}).Purge(ctx, pool, cut); err != nil || deleted != 7 {
		t.Errorf("got %d, %v, want the 7 that were locked", deleted, err)
	}
}

// The purge is between two statements while the claim works, and holds rows while the claim goes on.
func TestPurgeAndClaimDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for range 4 { // mixed through the blocks
		fill(t, pool, 1000, "enviado", cut.Add(-time.Hour))
		fill(t, pool, 50, "pendiente", cut.Add(-time.Hour))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that waits for the other would wait for ever
	defer cancel()
	store, _, err := claim.Open(t.Context(), pool, outbox.Table{})
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	take := func() {
		batch, err := store.Take(ctx, claim.Ask{Limit: 20, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		taken += len(batch.Rows)
	}
	open := begin(t, pool) // a purge that another host is in the midst of
	exec(t, open, "delete from outbox where estado = 'enviado' and ctid < '(20,0)'")
	db := &statements{Pool: pool, before: func(int) { take() }}
	deleted, err := outbox.Table{}.Purge(ctx, db, cut)
	if err != nil {
		t.Fatal(err)
	}
	if taken != 20*db.deletes {
		t.Errorf("got %d rows taken by %d claims, want 20 each", taken, db.deletes)
	}
	for range 10 {
		take()
	}
	if taken != 200 {
		t.Errorf("got %d rows taken, want all 200", taken)
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(t, pool); got != "procesando 200" || deleted <= 0 || deleted >= 4000 {
		t.Errorf("got %s left, %d deleted, want procesando 200 and what the other purge did not hold", got, deleted)
	}
}

func TestPurgeWorksWithinATransactionAndInEveryMode(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		fill(t, pool, 10, "enviado", cut.Add(-time.Hour))
		tx := beginPgx(t, pool, mode)
		if deleted, err := (outbox.Table{}).Purge(t.Context(), tx, cut, outbox.Sent, outbox.Failed); err != nil || deleted != 10 {
			t.Errorf("%s: got %d, %v, want 10", mode, deleted, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := left(t, pool); got != "none" {
		t.Errorf("got %s, want none", got)
	}
}
