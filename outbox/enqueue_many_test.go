package outbox_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// More than the 65,535 parameters that one statement may have.
func TestEnqueueManyTakesSeventyThousandMessagesInOneRoundTrip(t *testing.T) {
	t.Parallel()
	const n = 70_000
	pool := built(t, outbox.Table{})
	ms := make([]outbox.Message, n)
	for i := range ms {
		ms[i] = message(fmt.Sprintf("%05d", n-i)) // the opposite of the order in which they are written
	}
	tx := &counting{Tx: begin(t, pool)}
	got, err := outbox.Table{}.EnqueueMany(t.Context(), tx, ms)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tx.questions != 1 {
		t.Errorf("got %d questions to the database, want 1", tx.questions)
	}
	ids := make([]string, n)
	keys := make([]string, n)
	for i, e := range got {
		if !e.New {
			t.Fatalf("message %d: got %+v, want it new", i, e)
		}
		ids[i], keys[i] = e.ID, ms[i].IdempotencyKey
	}
	const same = `select count(*) from unnest($1::text[], $2::text[]) as u(id, clave) join outbox o on o.id = u.id::uuid and o.clave_idempotencia = u.clave`
	if right := value[int](t, pool, same, ids, keys); right != n {
		t.Errorf("%d of %d answers stand at the place of their message", right, n)
	}
}

// counting counts the questions of a transaction.
type counting struct {
	pgx.Tx
	questions int
}

func (c *counting) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	c.questions++
	return c.Tx.Query(ctx, statement, args...)
}

func (c *counting) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	c.questions++
	return c.Tx.QueryRow(ctx, statement, args...)
}

func TestEnqueueManyMarksDuplicatesInsideTheBatchAndAgainstTheTable(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	old := mustEnqueue(t, pool, outbox.Table{}, message("old"))[0]
	before := value[string](t, pool, everything)
	other := message("z")
	other.TenantID = otherTenant
	second := message("a") // a duplicate that differs in all but its key
	second.Destination, second.Data = "otra@example.com", 2
	ms := []outbox.Message{message("z"), message("a"), message("old"), second, other, message("z"), message("old"), message("b")}
	got := mustEnqueue(t, pool, outbox.Table{}, ms...)
	for i, isNew := range []bool{true, true, false, false, true, false, false, true} {
		if got[i].New != isNew {
			t.Errorf("message %d: got new %t, want %t", i, got[i].New, isNew)
		}
	}
	for _, same := range [][2]outbox.Enqueued{{got[2], old}, {got[6], old}, {got[3], got[1]}, {got[5], got[0]}} {
		if same[0].ID != same[1].ID {
			t.Errorf("got id %s for a duplicate of %s", same[0].ID, same[1].ID)
		}
	}
	exec(t, pool, "delete from outbox where clave_idempotencia <> 'old' and destino = 'ana@example.com'")
	if after := value[string](t, pool, everything); after != before {
		t.Errorf("the old row was touched, or a duplicate's fields were written: got\n%s\nwant\n%s", after, before)
	}
}

func TestEnqueueManyAnswersForATransactionThatWasOpen(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			pool := built(t, outbox.Table{})
			first, second := begin(t, pool), begin(t, pool)
			original, err := outbox.Table{}.Enqueue(t.Context(), first, message("k"))
			if err != nil {
				t.Fatal(err)
			}
			var got []outbox.Enqueued
			done := start(t, func() (err error) {
				got, err = outbox.Table{}.EnqueueMany(t.Context(), second, []outbox.Message{message("k"), message("a"), message("k"), message("z")})
				return err
			})
			eventually(t, pool, somebodyWaits)
			exec(t, first, end)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if err := second.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			isNew := []bool{got[0].New, got[1].New, got[2].New, got[3].New}
			if want := []bool{end == "rollback", true, false, true}; !slices.Equal(isNew, want) {
				t.Errorf("got new %t, want %t", isNew, want)
			}
			if got[0].ID != got[2].ID || (got[0].ID == original.ID) != (end == "commit") {
				t.Errorf("got %+v after the %s of %s", got, end, original.ID)
			}
			if rows := value[int](t, pool, "select count(*) from outbox"); rows != 3 {
				t.Errorf("got %d rows, want 3", rows)
			}
		})
	}
}

// Written as they come, one transaction would hold a and want z, the other hold z and want a.
func TestTwoTransactionsThatEnqueueTheSameKeysInOppositeOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	gate := begin(t, pool) // holds both between their first and last key
	if _, err := (outbox.Table{}).Enqueue(t.Context(), gate, message("m")); err != nil {
		t.Fatal(err)
	}
	forward := []outbox.Message{message("a"), message("m"), message("z")}
	backward := []outbox.Message{message("z"), message("m"), message("a")}
	answers := make([][]outbox.Enqueued, 2)
	var done []<-chan error
	for i, ms := range [][]outbox.Message{forward, backward} {
		done = append(done, start(t, func() error {
			return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
				answers[i], err = outbox.Table{}.EnqueueMany(t.Context(), tx, ms)
				return err
			})
		}))
	}
	eventually(t, pool, "select count(*) = 2 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
	if err := gate.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, answer := range done {
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
	}
	for i := range forward {
		one, other := answers[0][i], answers[1][2-i]
		if one.ID != other.ID || one.New == other.New {
			t.Errorf("%s: got %+v and %+v, want one id, new to one of them", forward[i].IdempotencyKey, one, other)
		}
	}
}

func TestEnqueueManyWritesNothingWhenOneMessageIsInvalid(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	bad := message("k")
	bad.Channel = ""
	tx := begin(t, pool)
	_, err := outbox.Table{}.EnqueueMany(t.Context(), tx, []outbox.Message{message("a"), message("b"), bad})
	refused(t, err, outbox.ErrInvalidOptions, "message 2: ", "Message.Channel ")
	if err := tx.Commit(t.Context()); err != nil { // it was not failed by the refusal
		t.Error(err)
	}
	if got := value[int](t, pool, "select count(*) from outbox"); got != 0 {
		t.Errorf("got %d rows, want none", got)
	}
}

func TestEnqueueManyOfNothingAsksNothing(t *testing.T) {
	t.Parallel()
	for _, ms := range [][]outbox.Message{nil, {}} {
		if got, err := (outbox.Table{}).EnqueueMany(t.Context(), untouched{}, ms); len(got) != 0 || err != nil {
			t.Errorf("got %v, %v, want nothing", got, err)
		}
	}
}

func TestEnqueueManyRefusesATransactionThatHasEndedOrFailed(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	ended, failed := begin(t, pool), begin(t, pool)
	if err := ended.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := failed.Exec(t.Context(), "select 1 / 0"); err == nil {
		t.Fatal("the statement should have failed")
	}
	for _, tx := range []pgx.Tx{ended, failed} {
		_, err := outbox.Table{}.EnqueueMany(t.Context(), tx, []outbox.Message{message("k")})
		refused(t, err, outbox.ErrTransactionRequired)
	}
}

func TestEnqueueManyKeepsEachMessagesOwnOptions(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	plain, full := message("plain"), message("full")
	full.MaxAttempts, full.OrderingKey, full.Headers, full.Data = 7, "o", map[string]string{"a": "b"}, map[string]int{"n": 1}
	full.ScheduledFor = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	mustEnqueue(t, pool, outbox.Table{}, plain, full, message("plain too"))
	got := value[string](t, pool, `select string_agg(concat_ws('|', clave_idempotencia, datos, max_intentos, clave_orden, cabeceras,
		case when programado_para = creado_en then 'now' else (programado_para at time zone 'UTC')::text end), '; ' order by clave_idempotencia) from outbox`)
	want := `full|{"n": 1}|7|o|{"a": "b"}|2030-01-02 03:04:05; plain|{}|5|now; plain too|{}|5|now`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
