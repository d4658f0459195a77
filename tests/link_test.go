package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// throughProxy is a pool that goes through p, as the listener does when it has no DSN of its own. It does not ask an idle
// connection whether it is alive before it uses it, so that a test decides which question is lost. It may have so many
// connections that to find each of them dead takes longer than a test waits.
func throughProxy(t *testing.T, b *box, p *proxy) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.PoolOn(t, b.dsn, func(config *pgxpool.Config) {
		p.dial(config)
		config.MaxConns = 12
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	})
	t.Cleanup(p.cut) // closing a pool waits for silent connections
	return pool
}

func lost(l listening) bool { return l.err != nil }

func heard(l listening) bool { return l.err == nil }

func TestHalfOpenListenerIsFoundAndReplaced(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	const interval = 500 * time.Millisecond
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{ListenDSN: p.dsn(t, b.dsn), ProbeInterval: interval})
	before, pid := r.len(), b.listenerPID(t)
	p.blackhole()
	since := time.Now()
	unheard := b.enqueue(t, message()) // its notification is lost
	_, at, _ := await(t, r.journal, before, "the dead link to be found", lost)
	if took := at.Sub(since); took > interval+3*time.Second+atOnce {
		t.Errorf("got found after %v, want %v at most", took, interval+3*time.Second)
	}
	r.awaitSent(t, unheard)
	r.awaitSent(t, b.enqueue(t, message())) // by the poll, which is short now

	p.set(forwarding)
	r.awaitListening(t, 2)
	b.awaitNotified(t, r)
	if got := b.listenerPID(t); got == pid {
		t.Errorf("got the same listener %d, want a new one", got)
	}
}

// awaitNotified sends messages until a notification wakes the relay for one.
func (b *box) awaitNotified(t *testing.T, r *running) {
	t.Helper()
	b.wakes(t, r, "a message", func() []string { return []string{b.enqueue(t, message())} })
}

// wakes commits messages until a notification wakes the relay for them: another look may take the first, or a watch the
// first ones.
func (b *box) wakes(t *testing.T, r *running, what string, commit func() (ids []string)) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; {
		b.awaitIdle(t)
		ids := commit()
		committed, notified := time.Now(), false
		var last time.Time
		for _, id := range ids {
			cause, at := r.delivery(t, id)
			last, notified = at, notified || cause == notify.Notified
		}
		if notified {
			quick(t, what, last.Sub(committed))
			return
		}
	}
	t.Errorf("%s: got it sent, and never by a notification; events: %s", what, r.tail(10))
}

// A firewall that forgot every connection: the listener's, and those that lie idle in the pool. Nothing says so.
func TestEveryConnectionDeadIsSurvivedInSeconds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	pool := throughProxy(t, b, p)
	r := b.sleeping(t, pool, newReceiver(), relay.Options{ProbeInterval: 500 * time.Millisecond, Lease: 5 * time.Second})
	openAll(t, pool)
	before := r.len()
	p.forget()
	since := time.Now()
	id := b.enqueue(t, message())
	r.awaitSent(t, id)
	if took := time.Since(since); took > 7*time.Second+atOnce {
		t.Errorf("got sent after %v, want one timeout of the pool and one of the listener at most", took)
	}
	await(t, r.journal, before, "the dead listener to be replaced", heard)
	b.awaitNotified(t, r)
}

// LISTEN in another database is accepted, and nothing that is sent here arrives there: as through a pooler in
// transaction mode.
func TestListenThatNeverHearsIsExplainedAndPolled(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.run(t, b.pool, newReceiver(), relay.Options{PollInterval: onlyWakeUps, ListenDSN: pgtest.Database(t)})
	_, _, deaf := await(t, r.journal, 0, "the observer to hear of it", func(l listening) bool {
		return l.err != nil && strings.Contains(l.err.Error(), "ListenDSN")
	})
	for range 2 {
		committed := time.Now()
		_, at := r.delivery(t, b.enqueue(t, message()))
		quick(t, "a message found by the poll of one second", at.Sub(committed)-time.Second)
	}
	if got := r.log.lines("ListenDSN"); len(got) != 1 {
		t.Errorf("got %d lines in the log that name ListenDSN, want 1: %q", len(got), got)
	}
	if got := len(all[listening](r.journal, deaf)); got != 1 {
		t.Errorf("got %d calls of the observer, want 1", got)
	}
}

func TestClaimWhoseAnswerIsLostComesBackWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	to := newReceiver()
	r := b.sleeping(t, throughProxy(t, b, p), to, relay.Options{ListenDSN: b.dsn, Lease: 10 * time.Second})
	b.exec(t, `create function say() returns trigger language plpgsql as $$ begin raise notice 'it is taken'; return null; end $$;
		create trigger say after update on OUTBOX for each row
		when (old.estado = 'pendiente' and new.estado = 'procesando') execute function say()`)
	p.loseAnswer("it is taken")
	before := r.len()
	id := b.enqueueIn(t, time.Second) // what a timer wakes for is claimed on the pool
	broken, _, _ := await(t, r.journal, before, "the claim to be given up", func(failed) bool { return true })
	if !errors.Is(broken.err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline", broken.err)
	}
	r.awaitSent(t, id)
	state, attempts := b.row(t, id)
	if got := to.count(id); state != outbox.Sent || attempts != 2 || got != 1 {
		t.Errorf("got %s after %d attempts and %d sends, want it sent once with the second attempt", state, attempts, got)
	}
}

// The session that brings the notification goes silent when the claim is made on it.
func TestClaimThatGoesSilentOnTheListenersSessionIsMadeOnThePool(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	to := newReceiver()
	r := b.sleeping(t, b.pool, to, relay.Options{ListenDSN: p.dsn(t, b.dsn)})
	b.awaitNotified(t, r)
	p.silenceOn("stmt_") // the name of a prepared statement: the claim
	for n := 0; len(r.log.lines("does not claim")) == 0; n++ {
		if n == 100 { // one may find the relay busy with the end of the one before
			t.Fatal("got no claim on the listener's session")
		}
		begun := time.Now()
		id := b.enqueue(t, message())
		r.awaitSent(t, id)
		if took := time.Since(begun); took > 3*time.Second+atOnce {
			t.Errorf("got it sent after %v, want it claimed on the pool once the session has been silent for 3 s", took)
		}
		if _, attempts := b.row(t, id); attempts != 1 || to.count(id) != 1 {
			t.Errorf("got %d attempts and %d sends, want one", attempts, to.count(id))
		}
	}
}

// The role that listens may be one that may do nothing else.
func TestListenerThatMayNotClaimLeavesItToThePool(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	role := "ear_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	b.exec(t, "create role "+role+" login password 'x'")
	t.Cleanup(func() {
		_, _ = b.pool.Exec(context.Background(), "drop role "+role)
	})
	config, err := pgx.ParseConfig(b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	dsn := fmt.Sprintf("host=%s port=%d dbname=%s user=%s password=x", config.Host, config.Port, config.Database, role)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{ListenDSN: dsn})
	for range 3 {
		begun := time.Now()
		r.awaitSent(t, b.enqueue(t, message()))
		quick(t, "a message", time.Since(begun))
	}
	if got := r.log.lines("does not claim"); len(got) != 0 {
		t.Errorf("got a claim on the session of another role: %q", got)
	}
}

func TestResultsOfAnOutageAreWrittenAfterItAndNotSentAgain(t *testing.T) {
	t.Parallel()
	const lease = 10 * time.Second
	for _, test := range []struct {
		name string
		// until says when the link is mended.
		until func(t *testing.T, b *box, r *running, id string, from int)
	}{
		{"shorter than the lease", func(t *testing.T, _ *box, r *running, _ string, from int) {
			await(t, r.journal, from, "a write to fail", func(failed) bool { return true })
		}},
		{"longer than the lease", func(t *testing.T, b *box, _ *running, id string, _ int) {
			b.awaitLeaseEnd(t, id)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			p := newProxy(t, b.dsn)
			to := newGate(1)
			r := b.sleeping(t, throughProxy(t, b, p), to, relay.Options{ListenDSN: b.dsn, Lease: lease})
			receive(t, "the first message", to.arrived)
			id := b.enqueue(t, message())
			if got := receive(t, "the send", to.arrived); got != id {
				t.Fatalf("got %s, want %s", got, id)
			}
			from := r.len()
			p.blackhole()
			close(to.open) // it is sent, and that cannot be written
			test.until(t, b, r, id, from)
			p.set(forwarding)
			r.awaitSent(t, id)
			state, attempts := b.row(t, id)
			if got := to.count(id); state != outbox.Sent || attempts != 1 || got != 1 {
				t.Errorf("got %s after %d attempts and %d sends, want it sent once with the first", state, attempts, got)
			}
		})
	}
}

// Only the connection on which the result goes out is dead. When the lease ends, the relay must not take the row again on
// another one while its result is on its way.
func TestRowIsNotTakenAgainWhileItsResultIsOnItsWay(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	to := newGate(1)
	r := b.sleeping(t, throughProxy(t, b, p), to, relay.Options{ListenDSN: b.dsn, Lease: 20 * time.Second}) // a write may take half of it
	receive(t, "the first message", to.arrived)
	b.exec(t, `create function cut() returns trigger language plpgsql as $$ begin
			new.bloqueado_hasta := now() + interval '7 s'; return new; end $$;
		create trigger cut before update on OUTBOX for each row when (new.estado = 'procesando') execute function cut()`)
	id := b.enqueue(t, message())
	receive(t, "the send", to.arrived)
	p.silenceOn(string(outbox.Sent))
	to.open <- struct{}{}
	r.awaitSent(t, id)
	state, attempts := b.row(t, id)
	if got := to.count(id); state != outbox.Sent || attempts != 1 || got != 1 {
		t.Errorf("got %s after %d attempts and %d sends, want it sent once with the first", state, attempts, got)
	}
	if len(all[failed](r.journal, 0)) == 0 {
		t.Error("got no write that failed: the test has not tested anything")
	}
}

// awaitLeaseEnd waits until the lease of a claimed row has ended.
func (b *box) awaitLeaseEnd(t *testing.T, id string) {
	t.Helper()
	waitfor.True(t, "the lease to end", func() bool {
		return b.count(t, "select count(*) from OUTBOX where id = $1::uuid and bloqueado_hasta <= now()", id) == 1
	})
}

func TestServerThatRefusesIsAskedRarely(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	r := b.sleeping(t, throughProxy(t, b, p), newReceiver(), relay.Options{})
	p.set(refusing)
	p.attempts.Store(0)
	p.cut()
	since := time.Now()
	id := b.enqueue(t, message())
	timer := time.NewTimer(10*time.Second - time.Since(since))
	defer timer.Stop()
	<-timer.C
	got := p.attempts.Load()
	if got > 40 || got < 4 {
		t.Errorf("got %d attempts to connect in 10 s, want 4 to 40", got)
	}
	t.Logf("attempts in 10 s: %d", got)
	p.set(forwarding)
	r.awaitSent(t, id)
	r.awaitListening(t, 2)
	b.awaitNotified(t, r)
}
