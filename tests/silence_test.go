package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// flood commits messages as fast as it can until the relay watches, and goes on until stop is called.
func (b *box) flood(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for range 4 {
		writing.Go(func() {
			for ctx.Err() == nil {
				err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
					_, err := b.table.Enqueue(ctx, tx, message())
					return err
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		writing.Wait()
	})
	t.Cleanup(stop)
	waitfor.True(t, "the relay to watch", func() bool { return b.holders(t, b.table.WatchLock(), "ExclusiveLock") == 1 })
	return stop
}

// holders counts who has a lock in a mode.
func (b *box) holders(t *testing.T, l outbox.Lock, mode string) int {
	t.Helper()
	return b.count(t, `select count(*) from pg_locks where locktype = 'advisory' and granted and mode = $3
		and classid::bigint = $1::bigint and objid::bigint = $2::bigint
		and database = (select oid from pg_database where datname = current_database())`, int64(l.Class), int64(uint32(l.Key)), mode)
}

// silent begins a transaction with a message that the trigger does not announce, since the relay watches.
func (b *box) silent(t *testing.T) (tx pgx.Tx, id string) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; {
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e, err := b.table.Enqueue(t.Context(), tx, message())
		if err != nil {
			t.Fatal(err)
		}
		var announced bool
		const ask = `select exists (select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and classid::bigint = $1::bigint)
			or not exists (select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and classid::bigint = $2::bigint)`
		if err := tx.QueryRow(t.Context(), ask, int64(b.table.WatchLock().Class), int64(b.table.CrossLock().Class)).Scan(&announced); err != nil {
			t.Fatal(err)
		}
		if !announced {
			return tx, e.ID
		}
		_ = tx.Rollback(t.Context()) // the relay was between two watches
	}
	t.Fatalf("waited %v for the relay to watch", patience)
	return nil, ""
}

// crossing waits until the relay waits for the writers that were silent.
func (b *box) crossing(t *testing.T) {
	t.Helper()
	waitfor.True(t, "the relay to let the writers ring", func() bool {
		return b.holders(t, b.table.WatchLock(), "ExclusiveLock") == 0 && b.holders(t, b.table.RoleLock(), "ExclusiveLock") == 1
	})
}

func (b *box) awaitIdle(t *testing.T) {
	t.Helper()
	waitfor.True(t, "the crossing", func() bool { return b.holders(t, b.table.RoleLock(), "ExclusiveLock") == 0 })
}

// promptly expects a message that has just been committed to be sent without any poll.
func (r *running) promptly(t *testing.T, what, id string) {
	t.Helper()
	committed := time.Now()
	r.awaitSent(t, id)
	quick(t, what, time.Since(committed))
}

func TestWriterThatStaysOpenHoldsUpTheCrossingAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{Batch: 100, Concurrency: 20})
	stop := b.flood(t)
	tx, id := b.silent(t)
	stop()
	b.crossing(t)
	for range 3 {
		r.promptly(t, "a message beside the open transaction", b.enqueue(t, message()))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.promptly(t, "the message of the open transaction", id)
	b.awaitIdle(t)
	b.awaitNotified(t, r)
}

func TestSilentTransactionThatIsPreparedIsSentWhenItCommits(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, localpg.Options{Settings: map[string]string{"max_prepared_transactions": "4"}})
	b := newBoxIn(t, server.DSN(), outbox.Table{})
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{Batch: 100, Concurrency: 20})
	stop := b.flood(t)
	tx, id := b.silent(t)
	if _, err := tx.Exec(t.Context(), "prepare transaction 'p'"); err != nil {
		t.Fatal(err)
	}
	_ = tx.Rollback(t.Context()) // gives the connection back; the transaction is no longer its
	stop()
	b.crossing(t)
	r.promptly(t, "a message beside the prepared transaction", b.enqueue(t, message()))
	b.exec(t, "commit prepared 'p'")
	r.promptly(t, "the message of the prepared transaction", id)
	b.awaitIdle(t)
	b.awaitNotified(t, r)
}

// The relay that watches cannot carry more, and its senders give no sign: the other one must hear of what comes.
func TestFullRelayThatWatchesCallsForHelp(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	hung := newGate(1) // so that it knows how long a write takes here, and what is many for this machine
	b.sleeping(t, b.pool, hung, relay.Options{Concurrency: 2, ProbeInterval: 100 * time.Millisecond})
	receive(t, "the first message", hung.arrived)
	other := b.run(t, b.pool, newReceiver(), relay.Options{Concurrency: 20, PollInterval: onlyWakeUps, NoWatch: true})
	other.awaitListening(t, 1)
	stop := b.flood(t)
	receive(t, "the first send that hangs", hung.arrived)
	receive(t, "the second", hung.arrived)
	stop()
	for range 3 {
		if b.holders(t, b.table.WatchLock(), "ExclusiveLock") == 0 {
			t.Fatal("the full relay watches no longer, want it to: this proves nothing")
		}
		other.promptly(t, "a message that nobody announced", b.enqueue(t, message()))
	}
	close(hung.open)
}

// Its senders take their time, and it must not keep to itself until then that it has silenced the writers.
func TestRelayThatStopsSaysWhatItSilencedBeforeItsSendsEnd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	hung := newGate(1) // so that it knows how long a write takes here, and what is many for this machine
	stops := b.sleeping(t, b.pool, hung, relay.Options{Concurrency: 2})
	receive(t, "the first message", hung.arrived)
	stop := b.flood(t)
	receive(t, "a send that hangs", hung.arrived)
	stop()
	other := b.run(t, b.pool, newReceiver(), relay.Options{Concurrency: 20, PollInterval: onlyWakeUps, NoWatch: true})
	other.awaitListening(t, 1)
	waitfor.True(t, "the other relay to have sent the rest", func() bool {
		return b.count(t, "select count(*) from OUTBOX where estado = 'pendiente'") == 0
	})
	tx, id := b.silent(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stops.stop()
	}()
	other.promptly(t, "the silent message", id)
	close(hung.open)
	<-ended
}

func TestRelayThatStopsWhileItWatchesLeavesNothingToThePoll(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	to := newReceiver()
	watches := b.sleeping(t, b.pool, to, relay.Options{Batch: 100, Concurrency: 20})
	stop := b.flood(t)
	other := b.run(t, b.pool, to, relay.Options{PollInterval: onlyWakeUps, NoWatch: true})
	other.awaitListening(t, 1)
	tx, id := b.silent(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	watches.stop()
	stop()
	waitfor.True(t, "the other relay to send what is left", func() bool {
		return b.count(t, "select count(*) from OUTBOX where estado <> 'enviado'") == 0
	})
	if n := to.count(id); n != 1 {
		t.Errorf("the silent message was sent %d times, want once", n)
	}
	b.awaitNotified(t, other)
}
