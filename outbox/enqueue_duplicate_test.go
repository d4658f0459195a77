package outbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// everything is the whole table with each row's place and versions: one that was written again or locked differs.
const everything = `select coalesce(string_agg(concat_ws('|', t.ctid, t.xmin, t.xmax, t::text), e'\n' order by t.ctid), '') from outbox t`

func TestDuplicateReturnsTheExistingMessageAndTouchesNothing(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	ids := map[string]string{}
	for _, state := range []string{"pendiente", "procesando", "enviado", "fallido", "descartado"} {
		ids[state] = mustEnqueue(t, pool, outbox.Table{}, message(state))[0].ID
		exec(t, pool, "update outbox set estado = $1, intentos = 2 where clave_idempotencia = $1", state)
	}
	before := value[string](t, pool, everything)
	for _, way := range drivers {
		for state, id := range ids {
			tx := way.begin(t, pool, outbox.Table{})
			m := message(state) // everything but tenant and key differs
			m.Channel, m.Destination, m.Template, m.Data, m.MaxAttempts = "whatsapp", "+549", "otra", "x", 9
			m.OrderingKey, m.Headers = "o", map[string]string{"a": "b"}
			if got, err := tx.enqueue(m); err != nil || got.New || got.ID != id {
				t.Errorf("%s, %s: got %+v, %v, want the existing message %s", way.name, state, got, err, id)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := value[string](t, pool, everything); after != before {
		t.Errorf("got\n%s\nwant\n%s", after, before)
	}
}

func TestSameKeyOfAnotherTenantIsAnotherMessage(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	other := message("k")
	other.TenantID = otherTenant
	got := mustEnqueue(t, pool, outbox.Table{}, message("k"), other)
	if !got[0].New || !got[1].New || got[0].ID == got[1].ID {
		t.Errorf("got %+v, want two new messages", got)
	}
}

func TestDuplicateWithinOneTransactionIsFound(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, way := range drivers {
		tx := way.begin(t, pool, outbox.Table{})
		first, err := tx.enqueue(message(way.name))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := tx.enqueue(message(way.name)); err != nil || again.New || again.ID != first.ID {
			t.Errorf("%s: got %+v, %v, want the first's id %s", way.name, again, err, first.ID)
		}
		_ = tx.rollback()
	}
}

// The second transaction must not answer before the first has ended: until then nobody knows whether its message exists.
func TestDuplicateOfAnOpenTransactionWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	for _, way := range drivers {
		for _, end := range []string{"commit", "rollback"} {
			t.Run(way.name+", "+end, func(t *testing.T) {
				t.Parallel()
				pool := built(t, outbox.Table{})
				first := begin(t, pool)
				original, err := outbox.Table{}.Enqueue(t.Context(), first, message("k"))
				if err != nil {
					t.Fatal(err)
				}
				second := way.begin(t, pool, outbox.Table{})
				var got outbox.Enqueued
				done := start(t, func() (err error) {
					got, err = second.enqueue(message("k"))
					return err
				})
				eventually(t, pool, somebodyWaits)
				exec(t, first, end)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if committed := end == "commit"; got.New == committed || (got.ID == original.ID) != committed {
					t.Errorf("got %+v after the %s of %s", got, end, original.ID)
				}
				if err := second.commit(); err != nil {
					t.Fatal(err)
				}
				if id := value[string](t, pool, "select string_agg(id::text, ' ') from outbox"); id != got.ID {
					t.Errorf("got rows %s, want only %s", id, got.ID)
				}
			})
		}
	}
}

// purging deletes every message between the first question of a transaction, which meets a duplicate, and the second,
// which reads it.
type purging struct {
	pgx.Tx
	pool  *pgxpool.Pool
	asked int
}

func (p *purging) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	if p.asked++; p.asked == 2 {
		if _, err := p.pool.Exec(ctx, "delete from outbox"); err != nil {
			panic(err)
		}
	}
	return p.Tx.QueryRow(ctx, statement, args...)
}

func TestMessageIsWrittenWhenItsDuplicateIsPurgedBeforeItCouldBeRead(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	old := mustEnqueue(t, pool, outbox.Table{}, message("k"))[0]
	tx := begin(t, pool)
	got, err := outbox.Table{}.Enqueue(t.Context(), &purging{Tx: tx, pool: pool}, message("k"))
	if err != nil || !got.New || got.ID == old.ID {
		t.Fatalf("got %+v, %v, want a new message", got, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id := value[string](t, pool, "select string_agg(id::text, ' ') from outbox"); id != got.ID {
		t.Errorf("got rows %s, want only %s", id, got.ID)
	}
}

func TestSnapshotOlderThanTheDuplicateIsAConflict(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, level := range []string{"repeatable read", "serializable"} {
		for _, way := range drivers {
			m := message(level + way.name)
			tx := way.begin(t, pool, outbox.Table{})
			tx.must(t, "set transaction isolation level "+level)
			tx.must(t, "select 1 from outbox") // takes the snapshot
			existing := mustEnqueue(t, pool, outbox.Table{}, m)[0]
			_, err := tx.enqueue(m)
			refused(t, err, outbox.ErrConflict, "run this transaction again")
			_ = tx.rollback()

			tx = way.begin(t, pool, outbox.Table{})
			tx.must(t, "set transaction isolation level "+level)
			if got, err := tx.enqueue(m); err != nil || got.New || got.ID != existing.ID {
				t.Errorf("%s, %s, again: got %+v, %v, want %s", level, way.name, got, err, existing.ID)
			}
			if got, err := tx.enqueue(message(level + way.name + " other")); err != nil || !got.New {
				t.Errorf("%s, %s, another key: got %+v, %v, want it new", level, way.name, got, err)
			}
			if err := tx.commit(); err != nil {
				t.Error(err)
			}
		}
		tx := begin(t, pool)
		exec(t, tx, "set transaction isolation level "+level)
		exec(t, tx, "select 1 from outbox")
		mustEnqueue(t, pool, outbox.Table{}, message(level))
		_, err := outbox.Table{}.EnqueueMany(t.Context(), tx, []outbox.Message{message(level + " new"), message(level)})
		refused(t, err, outbox.ErrConflict)
	}
}
