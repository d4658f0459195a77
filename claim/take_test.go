package claim_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestTakeGivesTheOldestDueFirst(t *testing.T) { eachWay(t, takeGivesTheOldestDueFirst) }

func takeGivesTheOldestDueFirst(t *testing.T, f fixture) {
	fourth := f.add(t, fields{"programado_para": "now() - interval '1 second'"})
	third := f.add(t, fields{"programado_para": "now() - interval '3 hours'", "proximo_intento_en": "now() - interval '2 seconds'", "intentos": "1"})
	first := f.add(t, fields{"programado_para": "now() - interval '1 hour'"})
	second := f.add(t, fields{"estado": "'procesando'", "intentos": "1", "programado_para": "now() - interval '2 hours'",
		"bloqueado_hasta": "now() - interval '3 seconds'"})
	if got, want := ids(f.take(t, 3).Rows), []string{first, second, third}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := ids(f.take(t, 3).Rows), []string{fourth}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTakeGivesRowsThatFellDueTogetherInTheOrderOfTheirIDs(t *testing.T) {
	eachWay(t, takeGivesRowsThatFellDueTogetherInTheOrderOfTheirIDs)
}

func takeGivesRowsThatFellDueTogetherInTheOrderOfTheirIDs(t *testing.T, f fixture) {
	var want []string
	for range 30 {
		want = append(want, f.add(t, fields{"programado_para": "timestamptz '2026-03-08 12:00:00Z'"}))
	}
	slices.Sort(want)
	got := ids(f.take(t, 10).Rows)
	got = append(got, ids(f.take(t, 20).Rows)...)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTakePassesOverRowsThatAnotherTransactionHolds(t *testing.T) {
	eachWay(t, takePassesOverRowsThatAnotherTransactionHolds)
}

func takePassesOverRowsThatAnotherTransactionHolds(t *testing.T, f fixture) {
	held := f.add(t, fields{"programado_para": "now() - interval '1 hour'"})
	free := f.add(t, nil)
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "select from outbox where id = $1::uuid for update", held); err != nil {
		t.Fatal(err)
	}
	if got := ids(f.take(t, 1).Rows); !slices.Equal(got, []string{free}) {
		t.Errorf("got %v, want the free row %s", got, free)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ids(f.take(t, 1).Rows); !slices.Equal(got, []string{held}) {
		t.Errorf("after the lock: got %v, want %s", got, held)
	}
}

func TestClaimsAtTheSameTimeNeverShareARow(t *testing.T) {
	t.Parallel()
	f := open(t)
	const n = 600
	f.exec(t, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia)
		select gen_random_uuid(), 'correo', 'x', 'aviso', n::text from generate_series(1, $1) n`, n)
	var mu sync.Mutex
	times := make(map[string]int)
	var claims sync.WaitGroup
	for range 8 {
		claims.Go(func() {
			// A claim may come back short while others hold the oldest rows, so only an empty one ends the turn.
			for {
				b, err := f.Take(t.Context(), claim.Ask{Limit: 7, Lease: lease})
				if err != nil {
					t.Error(err)
					return
				}
				if len(b.Rows) == 0 {
					return
				}
				mu.Lock()
				for _, r := range b.Rows {
					times[id(r)]++
				}
				mu.Unlock()
			}
		})
	}
	claims.Wait()
	if len(times) != n {
		t.Errorf("claimed %d different rows, want %d", len(times), n)
	}
	for id, count := range times {
		if count != 1 {
			t.Errorf("row %s was claimed %d times", id, count)
		}
	}
}

func TestTakeOfSomeChannelsLeavesTheOthersAlone(t *testing.T) {
	eachWay(t, takeOfSomeChannelsLeavesTheOthersAlone)
}

func takeOfSomeChannelsLeavesTheOthersAlone(t *testing.T, f fixture) {
	mine := f.add(t, nil)
	usedUp := f.add(t, fields{"canal": "'webhook'", "intentos": "5"})
	others := []string{
		f.add(t, fields{"canal": "'whatsapp'", "programado_para": "now() - interval '1 hour'"}),
		f.add(t, fields{"canal": "'whatsapp'", "intentos": "5"}),
	}
	f.add(t, fields{"canal": "'whatsapp'", "programado_para": "now() + interval '1 minute'"})
	f.add(t, fields{"programado_para": "now() + interval '1 hour'"})
	before := []string{f.whole(t, others[0]), f.whole(t, others[1])}
	b := f.ask(t, claim.Ask{Limit: 10, Lease: 24 * time.Hour, Channels: []string{"correo", "webhook"}}) // its end is not the next
	if got := ids(b.Rows); !slices.Equal(got, []string{mine}) {
		t.Errorf("claimed %v, want %s", got, mine)
	}
	f.wantRow(t, usedUp, "estado = 'fallido'")
	if wait := b.Next.Sub(b.Now); wait < 59*time.Minute {
		t.Errorf("the next row is due in %v, want an hour: the sooner one is of another channel", wait)
	}
	for i, id := range others {
		if got := f.whole(t, id); got != before[i] {
			t.Errorf("got %s, want unchanged %s", got, before[i])
		}
	}
}

func TestTakeFromADueTimeSkipsWhatFellDueBefore(t *testing.T) {
	eachWay(t, takeFromADueTimeSkipsWhatFellDueBefore)
}

func takeFromADueTimeSkipsWhatFellDueBefore(t *testing.T, f fixture) {
	from := time.Date(2026, 3, 8, 12, 0, 0, 1000, time.UTC)
	f.add(t, fields{"programado_para": "timestamptz '2026-03-08 12:00:00Z'"})
	usedUp := f.add(t, fields{"programado_para": "timestamptz '2026-03-08 12:00:00Z'", "intentos": "5"})
	at := f.add(t, fields{"programado_para": "timestamptz '2026-03-08 12:00:00.000001Z'"})
	later := f.add(t, nil)
	b := f.ask(t, claim.Ask{Limit: 10, Lease: lease, DueFrom: from})
	if got, want := ids(b.Rows), []string{at, later}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	f.wantRow(t, usedUp, "estado = 'pendiente'")
	if b := f.take(t, 10); len(b.Rows) != 1 || len(b.Closed) != 1 {
		t.Errorf("without the bound: claimed %d and closed %d rows, want the 1 and 1 that are left", len(b.Rows), len(b.Closed))
	}
}

func TestTakeTellsWhenTheNextRowFallsDue(t *testing.T) { eachWay(t, takeTellsWhenTheNextRowFallsDue) }

func takeTellsWhenTheNextRowFallsDue(t *testing.T, f fixture) {
	ask := claim.Ask{Limit: 10, Lease: 24 * time.Hour} // what is claimed here is not the next
	if b := f.ask(t, ask); !b.Next.IsZero() {
		t.Errorf("an empty table: got %v, want none", b.Next)
	}
	for _, step := range []struct { // each is sooner than those before
		name string
		row  fields
		want time.Duration // zero means none
	}{
		{"a row that is never due", fields{"programado_para": "'infinity'"}, 0},
		{"a finished row", fields{"estado": "'enviado'", "programado_para": "now() + interval '1 minute'"}, 0},
		{"a row in progress without a lease", fields{"estado": "'procesando'"}, 0},
		{"a scheduled row", fields{"programado_para": "now() + interval '5 hours'"}, 5 * time.Hour},
		{"a row that is claimed now", nil, 5 * time.Hour},
		{"a row that waits for its next attempt", fields{"intentos": "1", "proximo_intento_en": "now() + interval '4 hours'"}, 4 * time.Hour},
		{"a row under another relay's lease", fields{"estado": "'procesando'", "bloqueado_hasta": "now() + interval '3 hours'"}, 3 * time.Hour},
		{"a scheduled row whose attempts are used up", fields{"intentos": "5", "programado_para": "now() + interval '2 hours'"}, 2 * time.Hour},
	} {
		f.add(t, step.row)
		b := f.ask(t, ask)
		if step.want == 0 {
			if !b.Next.IsZero() {
				t.Errorf("%s: got %v, want none", step.name, b.Next)
			}
		} else if got := b.Next.Sub(b.Now); got > step.want || got < step.want-time.Minute {
			t.Errorf("%s: the next row is due in %v, want %v", step.name, got, step.want)
		}
	}
	// The last of them is due in 2 hours.
	for _, test := range []struct {
		name    string
		horizon time.Duration
		due     int // rows
		want    bool
	}{
		{"it lies within the horizon", 3 * time.Hour, 0, true},
		{"it lies beyond the horizon", time.Hour, 0, false},
		{"fewer rows than asked for are due", 0, 9, true},
		{"as many rows as asked for are due", 0, 10, false},
	} {
		var last string
		for range test.due {
			last = f.add(t, nil)
		}
		ask.Horizon = test.horizon
		b := f.ask(t, ask)
		if got := !b.Next.IsZero(); got != test.want {
			t.Errorf("%s: told of a next row %t, want %t", test.name, got, test.want)
		}
		if test.due == 0 {
			if !b.Due.IsZero() {
				t.Errorf("%s: the last claimed row was due at %v, want none", test.name, b.Due)
			}
			continue
		}
		f.wantRow(t, last, "programado_para = timestamptz '"+b.Due.Format(time.RFC3339Nano)+"'")
	}
}

func TestTakeReadsAMessageAsItWasWritten(t *testing.T) { eachWay(t, takeReadsAMessageAsItWasWritten) }

func takeReadsAMessageAsItWasWritten(t *testing.T, f fixture) {
	f.add(t, fields{`"organizacion_id"`: "'0f0e0d0c-0b0a-0908-0706-050403020100'", "canal": "'whatsapp'", "destino": "'+59899123456'",
		"plantilla": "'recordatorio'", "datos": `'{"nombre": "Ñandú 🦤", "n": 12345678901234567890}'`, "clave_idempotencia": "'turno:1'",
		"intentos": "2", "max_intentos": "9", "programado_para": "timestamptz '2026-03-08 12:00:00.000001Z'",
		"clave_orden": "'cliente-7'", "cabeceras": `'{"traceparent": "00-ab-cd-01"}'`})
	r := f.takeOne(t)
	for _, field := range []struct{ name, got, want string }{
		{"TenantID", r.TenantID, "0f0e0d0c-0b0a-0908-0706-050403020100"},
		{"Channel", r.Channel, "whatsapp"},
		{"Destination", r.Destination, "+59899123456"},
		{"Template", r.Template, "recordatorio"},
		{"Data", string(r.Data), `{"n": 12345678901234567890, "nombre": "Ñandú 🦤"}`},
		{"Key", r.Key, "turno:1"},
		{"OrderingKey", r.OrderingKey, "cliente-7"},
		{"Headers", string(r.Headers), `{"traceparent": "00-ab-cd-01"}`},
		{"Attempts", strconv.Itoa(r.Attempts), "3"},
		{"MaxAttempts", strconv.Itoa(r.MaxAttempts), "9"},
		{"Scheduled", r.Scheduled.UTC().Format(time.RFC3339Nano), "2026-03-08T12:00:00.000001Z"},
		{"Lease", r.Lease.Sub(r.Batch.Now).String(), lease.String()},
		{"Late", r.Late.String(), r.Batch.Now.Sub(r.Scheduled).String()},
	} {
		if field.got != field.want {
			t.Errorf("%s: got %s, want %s", field.name, field.got, field.want)
		}
	}
	if left := r.Batch.LeaseLeft(); left > lease || left < lease/2 {
		t.Errorf("%v of the lease are left, want a little less than %v", left, lease)
	}
}

func TestAllWorksOnATableWithoutTheOptionalColumns(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	f := fixture{pool: pool}
	migrateTable(t, pool, f.table)
	f.exec(t, "alter table outbox drop column clave_orden, drop column cabeceras")
	var err error
	if f.Store, _, err = claim.Open(t.Context(), pool, f.table); err != nil {
		t.Fatal(err)
	}
	takeRecordAndRelease(t, f)
}

func TestAllWorksOnATableWithDifficultNames(t *testing.T) {
	t.Parallel()
	takeRecordAndRelease(t, openTable(t, outbox.Table{Schema: "Mi Esquema", Name: `salida."x" {{due}}`, TenantColumn: `Cliente "Id"`, TenantType: outbox.TenantText}))
}

// takeRecordAndRelease runs each statement once.
func takeRecordAndRelease(t *testing.T, f fixture) {
	t.Helper()
	first := f.add(t, fields{"programado_para": "now() - interval '1 hour'"})
	second := f.add(t, nil)
	rows := f.take(t, 10).Rows
	if got := ids(rows); !slices.Equal(got, []string{first, second}) {
		t.Fatalf("claimed %v, want %s and %s", got, first, second)
	}
	if rows[0].OrderingKey != "" || rows[0].Headers != nil {
		t.Errorf("got ordering key %q and headers %q, want none", rows[0].OrderingKey, rows[0].Headers)
	}
	if ours, err := f.Record(t.Context(), []claim.Result{{Row: rows[0], State: outbox.Sent}}); err != nil || !ours[0] {
		t.Errorf("record: got %v, %v, want it written", ours, err)
	}
	if ours, err := f.Release(t.Context(), rows[1:]); err != nil || !ours[0] {
		t.Errorf("release: got %v, %v, want it written", ours, err)
	}
	f.wantRow(t, first, "estado = 'enviado'")
	f.wantRow(t, second, "estado = 'pendiente'")
}

func TestOpenRefusesADatabaseWithoutTheTable(t *testing.T) {
	t.Parallel()
	if _, _, err := claim.Open(t.Context(), pgtest.Pool(t), outbox.Table{}); !errors.Is(err, outbox.ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}
}
