package claim_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// The server's clock stands still here: a now() of our own comes before the server's in the search path. Only so can rows
// fall due exactly at the claim.
const frozenClock = `
	create schema clock;
	create function clock.now() returns timestamptz language sql stable
		as $$ select timestamptz '2026-03-08 12:00:00.123456+00' $$;`

var frozen = time.Date(2026, 3, 8, 12, 0, 0, 123456000, time.UTC)

// moment is a time that a column can hold and its place for Decide, where a zero time is null.
type moment struct {
	stored pgtype.Timestamptz
	at     time.Time
}

func (m moment) String() string {
	switch {
	case !m.stored.Valid:
		return "null"
	case m.stored.InfinityModifier != pgtype.Finite:
		return m.stored.InfinityModifier.String()
	}
	return m.at.Sub(frozen).String()
}

func moments() []moment {
	finite := func(d time.Duration) moment {
		at := frozen.Add(d)
		return moment{pgtype.Timestamptz{Time: at, Valid: true}, at}
	}
	return []moment{
		{}, // null
		{pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC)},
		finite(-time.Hour), finite(-time.Microsecond), finite(0), finite(time.Microsecond), finite(time.Hour),
		{pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, time.Date(290000, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
}

// candidate is a generated row.
type candidate struct {
	outbox.Row
	id                      uuid.UUID
	scheduled, next, leased moment
}

func (c candidate) String() string {
	return fmt.Sprintf("%s %d/%d programado_para %v proximo_intento_en %v bloqueado_hasta %v",
		c.State, c.Attempts, c.MaxAttempts, c.scheduled, c.next, c.leased)
}

// candidates are all rows that can be made of these states, attempts and times.
func candidates() map[uuid.UUID]candidate {
	all := make(map[uuid.UUID]candidate)
	for _, state := range []outbox.State{"pendiente", "procesando", "enviado", "fallido", "descartado", "pausado"} {
		for _, attempts := range [][2]int{{0, 5}, {4, 5}, {5, 5}, {6, 5}, {0, 0}} {
			for _, scheduled := range moments()[1:] {
				for _, next := range moments() {
					for _, until := range moments() {
						row := outbox.Row{State: state, Attempts: attempts[0], MaxAttempts: attempts[1],
							ScheduledFor: scheduled.at, NextAttemptAt: next.at, LeaseUntil: until.at}
						c := candidate{row, uuid.New(), scheduled, next, until}
						all[c.id] = c
					}
				}
			}
		}
	}
	return all
}

// after is what a row looks like after the claim.
type after struct {
	State          outbox.State
	Attempts       int
	Lease          moment
	Category, Code string
}

// expected follows Decide and the rule that the claim closes what is used up once it is due.
func expected(c candidate) after {
	until := frozen.Add(lease)
	switch outbox.Decide(c.Row, frozen) {
	case outbox.Send, outbox.Reclaim:
		return after{"procesando", c.Attempts + 1, moment{pgtype.Timestamptz{Time: until, Valid: true}, until}, "antes", "de_antes"}
	case outbox.Discard:
		if c.State == "procesando" {
			return after{"fallido", c.Attempts, moment{}, "red", "lease_agotado"}
		}
		if c.State == "pendiente" && !c.ScheduledFor.After(frozen) && !c.NextAttemptAt.After(frozen) {
			return after{"fallido", c.Attempts, moment{}, "red", "intentos_agotados"}
		}
	}
	return after{c.State, c.Attempts, c.leased, "antes", "de_antes"}
}

func TestClaimTakesExactlyWhatDecideSendsOrReclaimsAndClosesWhatIsUsedUp(t *testing.T) {
	t.Parallel()
	f := openFrozen(t)
	rows := candidates()
	f.copyIn(t, rows)
	b := f.ask(t, claim.Ask{Limit: len(rows), Lease: lease})
	if !b.Now.Equal(frozen) {
		t.Fatalf("the claim's now is %v, want the frozen %v", b.Now, frozen)
	}

	taken, closed := make(map[uuid.UUID]bool), make(map[uuid.UUID]bool)
	for _, r := range b.Rows {
		taken[r.ID] = true
	}
	for _, c := range b.Closed {
		closed[c.ID] = true
	}
	decisions := make(map[string]int)
	got := f.readBack(t)
	for id, c := range rows {
		want, decision := expected(c), outbox.Decide(c.Row, frozen)
		if wantTaken := decision == outbox.Send || decision == outbox.Reclaim; taken[id] != wantTaken {
			t.Errorf("%v: taken %t, want %t since Decide says %s", c, taken[id], wantTaken, decision)
		}
		if wantClosed := want.State != c.State && want.State == outbox.Failed; closed[id] != wantClosed {
			t.Errorf("%v: closed %t, want %t", c, closed[id], wantClosed)
		}
		if got[id].String() != want.String() {
			t.Errorf("%v: got %v, want %v", c, got[id], want)
		}
		decisions[string(decision)]++
	}
	if len(decisions) != 5 || len(taken)+len(closed) != len(b.Rows)+len(b.Closed) {
		t.Errorf("got decisions %v and %d rows of the claim, want each of the five decisions and no row twice", decisions, len(b.Rows)+len(b.Closed))
	}
}

func TestClaimInSmallBatchesTakesTheSameRowsInTheOrderTheyFellDue(t *testing.T) {
	t.Parallel()
	f := openFrozen(t)
	rows := candidates()
	maps.DeleteFunc(rows, func(_ uuid.UUID, c candidate) bool { return c.Attempts >= c.MaxAttempts })
	f.copyIn(t, rows)
	want := 0
	for _, c := range rows {
		if d := outbox.Decide(c.Row, frozen); d == outbox.Send || d == outbox.Reclaim {
			want++
		}
	}
	var order []*claim.Row
	for {
		b := f.take(t, 97)
		order = append(order, b.Rows...)
		if len(b.Rows) < 97 {
			break
		}
	}
	if len(order) != want {
		t.Errorf("claimed %d rows, want %d", len(order), want)
	}
	if !slices.IsSortedFunc(order, func(a, b *claim.Row) int { return due(rows[a.ID]).Compare(due(rows[b.ID])) }) {
		t.Error("rows were claimed in another order than that in which they fell due")
	}
}

func due(c candidate) time.Time {
	if c.State == outbox.Processing {
		return c.LeaseUntil
	}
	if c.NextAttemptAt.After(c.ScheduledFor) {
		return c.NextAttemptAt
	}
	return c.ScheduledFor
}

func (a after) String() string {
	return fmt.Sprintf("%s %d attempts, lease %v, %s/%s", a.State, a.Attempts, a.Lease, a.Category, a.Code)
}

// openFrozen is open on a server whose clock stands still for the store.
func openFrozen(t *testing.T) fixture {
	t.Helper()
	dsn := pgtest.Database(t)
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = "clock, pg_catalog"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f := fixture{pool: pool}
	f.exec(t, frozenClock)
	migrateTable(t, pool, f.table)
	if f.Store, _, err = claim.Open(t.Context(), pool, f.table); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) copyIn(t *testing.T, rows map[uuid.UUID]candidate) {
	t.Helper()
	all := slices.Collect(maps.Values(rows))
	columns := []string{"id", "organizacion_id", "canal", "destino", "plantilla", "clave_idempotencia", "estado", "intentos", "max_intentos",
		"programado_para", "proximo_intento_en", "bloqueado_hasta", "ultimo_error_categoria", "ultimo_error_codigo"}
	n, err := f.pool.CopyFrom(t.Context(), pgx.Identifier{"public", "outbox"}, columns, pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
		c := all[i]
		return []any{c.id, uuid.Nil, "correo", "ana@example.com", "aviso", c.id.String(), string(c.State), c.Attempts, c.MaxAttempts,
			c.scheduled.stored, c.next.stored, c.leased.stored, "antes", "de_antes"}, nil
	}))
	if err != nil || int(n) != len(all) {
		t.Fatalf("copied %d of %d rows: %v", n, len(all), err)
	}
}

func (f fixture) readBack(t *testing.T) map[uuid.UUID]after {
	t.Helper()
	rows, err := f.pool.Query(t.Context(), "select id, estado, intentos, bloqueado_hasta, ultimo_error_categoria, ultimo_error_codigo from public.outbox")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[uuid.UUID]after)
	var id uuid.UUID
	var a after
	_, err = pgx.ForEachRow(rows, []any{&id, &a.State, &a.Attempts, &a.Lease.stored, &a.Category, &a.Code}, func() error {
		a.Lease.at = a.Lease.stored.Time
		all[id] = a
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
