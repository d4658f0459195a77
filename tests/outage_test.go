package tests

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

func TestKilledListenerComesBackAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	for n := range 2 {
		pid := b.killListener(t)
		r.awaitListening(t, n+2)
		b.awaitNotified(t, r)
		if got := b.listenerPID(t); got == pid {
			t.Errorf("got the same listener %d, want a new one", got)
		}
	}
}

func TestBacklogAfterAKilledListenerIsSentWithFullConcurrency(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	to := newGate(1)
	r := b.sleeping(t, b.pool, to, relay.Options{Concurrency: 10})
	receive(t, "the first message", to.arrived)
	from := r.len()
	b.killListener(t)
	b.fill(t, 500)
	for range 10 { // none of which is let through before
		receive(t, "ten sends at once", to.arrived)
	}
	close(to.open)
	waitfor.True(t, "all to be sent", func() bool { return len(all[relay.Recorded](r.journal, from)) >= 500 })
	b.allSentOnce(t, 501)
}

// allSentOnce checks that n messages stand as sent with the first attempt, and nothing else.
func (b *box) allSentOnce(t *testing.T, n int) {
	t.Helper()
	if got := b.count(t, "select count(*) from OUTBOX where estado = 'enviado' and intentos = 1"); got != n {
		t.Errorf("got %d messages sent with the first attempt, want %d", got, n)
	}
	if got := b.count(t, "select count(*) from OUTBOX"); got != n {
		t.Errorf("got %d messages in all, want %d", got, n)
	}
}

// One server, hurt again and again; a relay sleeps on it all the while.
func TestServerThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, localpg.Options{})
	b := newBoxIn(t, server.DSN(), outbox.Table{})
	// A claim whose answer a crash cuts off comes back when its lease ends.
	r := b.sleeping(t, pgtest.PoolOn(t, b.dsn, nil), newReceiver(), relay.Options{Lease: 15 * time.Second})
	ups := 1
	back := func(t *testing.T) {
		t.Helper()
		ups++
		r.awaitListening(t, ups)
		b.pool.Reset()
		b.awaitNotified(t, r)
	}

	t.Run("shut down and started", func(t *testing.T) {
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back(t)
	})
	t.Run("crashed", func(t *testing.T) {
		id := b.enqueue(t, message())
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back(t)
		r.awaitSent(t, id)
	})
	t.Run("away when the relay starts", func(t *testing.T) {
		r.stop()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := b.run(t, pgtest.PoolOn(t, b.dsn, nil), newReceiver(), relay.Options{PollInterval: onlyWakeUps})
		for from := range 3 {
			await(t, late.journal, from, "attempts to begin", func(failed) bool { return true })
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.pool.Reset()
		late.awaitListening(t, 1)
		b.awaitNotified(t, late)
		late.stop()
	})
	t.Run("read-only", func(t *testing.T) { readOnly(t, server) })
}

// A former primary answers, and refuses to write.
func readOnly(t *testing.T, server *localpg.Server) {
	b := &box{dsn: server.DSN(), pool: pgtest.PoolOn(t, server.DSN(), nil)}
	to := newReceiver()
	r := b.sleeping(t, pgtest.PoolOn(t, b.dsn, nil), to, relay.Options{})
	from := r.len()
	tx, err := b.pool.Begin(t.Context()) // begins while it may write
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	e, err := b.table.Enqueue(t.Context(), tx, message())
	if err != nil {
		t.Fatal(err)
	}
	b.setReadOnly(t, "on")
	refused := func(f failed) bool { return outbox.SQLState(f.err) == "25006" }
	waitfor.True(t, "the relay's sessions to be read-only", func() bool { // they need not be when the test's is
		b.exec(t, "select pg_notify($1, 'help')", b.table.Channel())
		return slices.ContainsFunc(all[failed](r.journal, from), refused)
	})
	from = r.len()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, r.journal, from, "another claim to be refused", refused)
	b.setReadOnly(t, "off")
	r.awaitSent(t, e.ID)
	if state, attempts := b.row(t, e.ID); state != outbox.Sent || attempts != 1 || to.count(e.ID) != 1 {
		t.Errorf("got %s after %d attempts and %d sends, want it sent once with the first", state, attempts, to.count(e.ID))
	}
	b.awaitNotified(t, r)
}

func (b *box) setReadOnly(t *testing.T, value string) {
	t.Helper()
	b.exec(t, "alter system set default_transaction_read_only = "+value)
	b.exec(t, "select pg_reload_conf()")
	waitfor.True(t, "the setting to be read", func() bool {
		return b.count(t, "select count(*) from pg_settings where name = 'default_transaction_read_only' and setting = $1", value) == 1
	})
}

// The address leads to another server, and every connection to the former one stays open.
func TestRelayFollowsAnAddressToTheNewPrimary(t *testing.T) {
	t.Parallel()
	former := newBoxIn(t, pgtest.Server(t, localpg.Options{}).DSN(), outbox.Table{})
	next := newBoxIn(t, pgtest.Server(t, localpg.Options{}).DSN(), outbox.Table{})
	p := newProxy(t, former.dsn)
	r := former.run(t, throughProxy(t, former, p), newReceiver(), relay.Options{PollInterval: 500 * time.Millisecond, ProbeInterval: 500 * time.Millisecond})
	former.asleep(t, r)
	from := r.len()
	former.setReadOnly(t, "on")
	p.retarget(t, next.dsn)
	r.awaitSent(t, next.enqueue(t, message()))
	await(t, r.journal, from, "the listener to leave the former server", lost)
	r.awaitListening(t, 2)
	next.awaitNotified(t, r)
}

func TestInsertsWithoutATriggerArePolledAndSaidOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, hurt, want string }{
		{"dropped", `drop trigger zz_outbox_wake on OUTBOX`, "missing"},
		{"disabled", `alter table OUTBOX disable trigger zz_outbox_wake`, "disabled"},
		{"for replication only", `alter table OUTBOX enable replica trigger zz_outbox_wake`, "disabled"},
		{"of a table that was renamed", `alter table OUTBOX rename to salida`, "another channel"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.exec(t, test.hurt)
			if test.want == "another channel" {
				b.table.Name = "salida"
				b.exec(t, `alter index public.`+outbox.Table{}.Names()["due_index"]+` rename to `+b.table.Names()["due_index"])
			}
			r := b.run(t, b.pool, newReceiver(), relay.Options{PollInterval: 200 * time.Millisecond})
			r.awaitListening(t, 1)
			for range 3 {
				id := b.enqueue(t, message())
				committed := time.Now()
				_, at := r.delivery(t, id)
				quick(t, "a message found by the poll", at.Sub(committed))
			}
			if slices.Contains(all[woken](r.journal, 0), woken(notify.Notified)) {
				t.Error("got woken by a notification: the test has not tested anything")
			}
			waitfor.True(t, "a line that says so", func() bool { return len(r.log.lines("WARN", "relay migrate", test.want)) > 0 })
			if got := r.log.lines("relay migrate"); len(got) != 1 {
				t.Errorf("got %d lines that say so, want 1: %q", len(got), got)
			}
		})
	}
}

// Rows that arrive by logical replication fire no ordinary trigger.
func TestReplicatedRowsAreSentByThePoll(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const interval = 300 * time.Millisecond
	r := b.run(t, b.pool, newReceiver(), relay.Options{PollInterval: interval})
	b.asleep(t, r)
	id := ids(1)[0]
	if got := announced(t, b, func() {
		b.commit(t, func(tx pgx.Tx) error {
			if err := b.in(tx, "set local session_replication_role = replica"); err != nil {
				return err
			}
			return b.in(tx, insertOne, id)
		})
	}); len(got) != 0 {
		t.Fatalf("got notifications %q, want none: the test has not tested anything", got)
	}
	committed := time.Now()
	_, at := r.delivery(t, id)
	quick(t, "a replicated row", at.Sub(committed)-interval)
}

// A send that takes long holds no connection and no transaction, and does not hold up another relay.
func TestSlowSendHoldsNothing(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	slow := newGate(1)
	pool := pgtest.PoolOn(t, b.dsn, nil)
	first := b.sleeping(t, pool, slow, relay.Options{Batch: 1, Concurrency: 1})
	receive(t, "the first message", slow.arrived)
	held := b.enqueue(t, message())
	receive(t, "the slow send", slow.arrived)
	waitfor.True(t, "every connection to be back in the pool", func() bool { return pool.Stat().AcquiredConns() == 0 })
	waitfor.True(t, "every session to be out of its transaction during the send", func() bool {
		return b.count(t, `select count(*) from pg_stat_activity where datname = current_database()
			and state <> 'idle' and pid <> pg_backend_pid() and backend_type = 'client backend'`) == 0
	})
	to := newReceiver()
	b.run(t, pgtest.PoolOn(t, b.dsn, nil), to, relay.Options{PollInterval: onlyWakeUps})
	b.fill(t, 100) // of which the first relay may take one, to have it at hand
	waitfor.True(t, "the other relay to send the rest", func() bool { return to.total() >= 99 })
	if state, _ := b.row(t, held); state != outbox.Processing {
		t.Errorf("got the message that is being sent %s, want %s", state, outbox.Processing)
	}
	close(slow.open)
	first.awaitSent(t, held)
}
