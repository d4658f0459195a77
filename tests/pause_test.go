package tests

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const otherTenant = "00000000-0000-4000-8000-000000000002"

// messageOf is a message of a tenant.
func messageOf(tenantID string) outbox.Message {
	m := message()
	m.TenantID = tenantID
	return m
}

func (b *box) pause(t *testing.T, channel, tenantID string) {
	t.Helper()
	if changed, err := admin.Pause(t.Context(), b.pool, b.table, channel, tenantID); !changed || err != nil {
		t.Fatalf("pause: got %t, %v, want a new pause", changed, err)
	}
}

func (b *box) resume(t *testing.T, channel, tenantID string) {
	t.Helper()
	if changed, err := admin.Resume(t.Context(), b.pool, b.table, channel, tenantID); !changed || err != nil {
		t.Fatalf("resume: got %t, %v, want that there was a pause", changed, err)
	}
}

// awaitHeeded waits until a relay has read so many changes of the pauses.
func awaitHeeded(t *testing.T, r *running, changes int) {
	t.Helper()
	waitfor.True(t, "the relay to read the pauses", func() bool { return len(r.log.lines("pauses have changed")) >= changes })
}

// awaitLook waits until a relay has looked at the table without taking anything, from a position of its journal on. The
// position must be read before what makes the relay look.
func awaitLook(t *testing.T, r *running, from int) {
	t.Helper()
	await(t, r.journal, from, "a look that finds nothing", func(c relay.Claim) bool { return c.Err == nil && c.Rows == 0 })
}

func (b *box) wantUntouched(t *testing.T, id string) {
	t.Helper()
	if state, attempts := b.row(t, id); state != outbox.Pending || attempts != 0 {
		t.Errorf("a paused message is %s after %d attempts, want pendiente after none", state, attempts)
	}
}

func TestPauseHoldsIdleRelaysUntilResume(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	sender := newReceiver()
	relays := []*running{b.sleeping(t, b.pool, sender, relay.Options{})}
	relays = append(relays, b.run(t, b.pool, sender, relay.Options{PollInterval: onlyWakeUps}))
	relays[1].awaitListening(t, 1)

	since := time.Now()
	b.pause(t, "webhook", message().TenantID)
	for _, r := range relays {
		awaitHeeded(t, r, 1)
	}
	quick(t, "the pause", time.Since(since))
	from := []int{relays[0].len(), relays[1].len()}
	paused := b.enqueue(t, message()) // enqueueing goes on
	for i, r := range relays {
		awaitLook(t, r, from[i])
	}
	other := b.enqueue(t, messageOf(otherTenant))
	waitfor.True(t, "a message of another tenant to be sent", func() bool { return sender.count(other) == 1 })
	b.wantUntouched(t, paused)

	before := time.Now()
	b.resume(t, "webhook", message().TenantID)
	waitfor.True(t, "the message to be sent after resume", func() bool { return sender.count(paused) == 1 })
	quick(t, "resume", time.Since(before))
	at := b.enqueue(t, message())
	waitfor.True(t, "the next message to be sent", func() bool { return sender.count(at) == 1 })
}

func TestPauseOfABusyRelayFinishesWhatIsBeingSentAndGivesBackTheRest(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const total, concurrency = 500, 2
	g, hold := newGate(0), make(chan struct{})
	ahead := sync.OnceFunc(func() { close(hold) })
	sender := transporte.Func(func(ctx context.Context, m transporte.Message) (string, error) {
		select {
		case <-hold:
			return g.Send(ctx, m)
		default: // fast sends, after which a relay claims ahead
			return g.receiver.Send(ctx, m)
		}
	})
	opts := relay.Options{Concurrency: concurrency, PollInterval: onlyWakeUps}
	opts.Observer.Claim = func(c relay.Claim) {
		if c.Rows > concurrency {
			ahead()
		}
	}
	r := b.run(t, b.pool, sender, opts)
	r.awaitListening(t, 1)
	b.fill(t, total)
	var inFlight []string
	for range concurrency {
		inFlight = append(inFlight, receive(t, "a send", g.arrived))
	}
	begun := len(all[sending](r.journal, 0))
	waitfor.True(t, "more to be claimed than is being sent", func() bool {
		return b.count(t, "select count(*) from OUTBOX where estado <> 'pendiente'") > begun
	})

	since := time.Now()
	b.pause(t, "webhook", "")
	waitfor.True(t, "what was not begun to be given back", func() bool {
		return b.count(t, "select count(*) from OUTBOX where estado = 'pendiente' and intentos = 0") == total-begun
	})
	quick(t, "the pause", time.Since(since))
	from := r.len()
	g.open <- struct{}{}
	g.open <- struct{}{}
	for _, id := range inFlight {
		r.awaitSent(t, id)
	}
	b.exec(t, "select pg_notify($1, 'help')", b.table.Channel())
	awaitLook(t, r, from)
	if got := len(all[sending](r.journal, 0)); got != begun {
		t.Errorf("%d sends began, want the %d from before the pause", got, begun)
	}

	close(g.open)
	b.resume(t, "webhook", "")
	waitfor.True(t, "everything to be sent", func() bool { return b.count(t, "select count(*) from OUTBOX where estado = 'enviado'") == total })
	if n := g.total(); n != total {
		t.Errorf("%d sends, want %d: each once", n, total)
	}
}

func TestPauseIsReadWhileNobodyListens(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	d := newDialling(t, b)
	sender := newReceiver()
	r := b.sleeping(t, d.pool, sender, relay.Options{})
	proceed := d.holdListener(t, b)
	b.pause(t, "webhook", "")
	awaitHeeded(t, r, 1) // by the poll
	from := r.len()
	paused := b.enqueue(t, message())
	awaitLook(t, r, from)
	b.wantUntouched(t, paused)
	b.resume(t, "webhook", "")
	close(proceed)
	awaitHeeded(t, r, 2)
	r.awaitSent(t, paused)
}

// The relay believes that it hears.
func TestPauseWhoseNotificationIsLostIsReadOnceTheDeadLinkIsFound(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	const interval = 500 * time.Millisecond
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{ListenDSN: p.dsn(t, b.dsn), ProbeInterval: interval})
	p.blackhole()
	since := time.Now()
	b.pause(t, "webhook", "")
	awaitHeeded(t, r, 1)
	if took := time.Since(since); took > interval+3*time.Second+atOnce {
		t.Errorf("the pause took %v, want what it takes to find a dead link, %v", took, interval+3*time.Second)
	}
	p.set(forwarding)
	r.awaitListening(t, 2)
	b.resume(t, "webhook", "")
	awaitHeeded(t, r, 2)
	r.awaitSent(t, b.enqueue(t, message()))
}

func TestRelayThatHearsNothingReadsThePausesWithEachPoll(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := newProxy(t, b.dsn)
	p.set(refusing)
	sender := newReceiver()
	r := b.run(t, b.pool, sender, relay.Options{ListenDSN: p.dsn(t, b.dsn), PollInterval: onlyWakeUps})
	r.awaitSent(t, b.enqueue(t, message()))
	since := time.Now()
	b.pause(t, "", "")
	awaitHeeded(t, r, 1)
	quick(t, "the pause", time.Since(since))
	from := r.len()
	paused := b.enqueue(t, message())
	awaitLook(t, r, from)
	awaitLook(t, r, r.len())
	b.wantUntouched(t, paused)
	b.resume(t, "", "")
	r.awaitSent(t, paused)
}

func TestRelayThatStartsReadsThePausesFirst(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.pause(t, "webhook", "")
	paused := b.enqueue(t, message())
	sender := newReceiver()
	for range 2 {
		r := b.run(t, b.pool, sender, relay.Options{PollInterval: onlyWakeUps})
		r.awaitListening(t, 1)
		from := r.len()
		b.exec(t, "select pg_notify($1, 'help')", b.table.Channel())
		awaitLook(t, r, from)
		r.stop()
		summary, err := relay.RunOnce(t.Context(), b.pool, b.table, relay.Senders{"webhook": sender}, relay.Options{})
		if err != nil || summary.Claimed != 0 {
			t.Errorf("RunOnce: got %d claimed, %v, want none", summary.Claimed, err)
		}
	}
	b.wantUntouched(t, paused)
	b.resume(t, "webhook", "")
	if summary, err := relay.RunOnce(t.Context(), b.pool, b.table, relay.Senders{"webhook": sender}, relay.Options{}); err != nil || summary.Sent != 1 {
		t.Errorf("RunOnce after resume: got %d sent, %v, want 1", summary.Sent, err)
	}
}

// pauseQueries counts the questions for the pauses, and the claims that read them.
type pauseQueries struct{ n atomic.Int32 }

func (q *pauseQueries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "outbox_pause_") {
		q.n.Add(1)
	}
	return ctx
}

func (q *pauseQueries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (q *pauseQueries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, query := range data.Batch.QueuedQueries {
		if strings.Contains(query.SQL, "outbox_pause_") {
			q.n.Add(1)
		}
	}
	return ctx
}

func (q *pauseQueries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (q *pauseQueries) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func TestRelayThatHearsAsksForPausesOnlyWhenTheyChange(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var asked pauseQueries
	pool := pgtest.PoolOn(t, b.dsn, func(config *pgxpool.Config) { config.ConnConfig.Tracer = &asked })
	r := b.sleeping(t, pool, newReceiver(), relay.Options{})
	before := asked.n.Load()
	for range 20 {
		r.awaitSent(t, b.enqueue(t, message()))
	}
	if n := asked.n.Load() - before; n != 0 {
		t.Errorf("20 messages, no pause: the pauses were read %d times, want never", n)
	}
	b.pause(t, "correo", "")
	awaitHeeded(t, r, 1)
	r.awaitSent(t, b.enqueue(t, message()))
	if asked.n.Load() == before {
		t.Error("the pauses were not read although there is one")
	}
	b.resume(t, "correo", "")
	awaitHeeded(t, r, 2)
	b.asleep(t, r)
	before = asked.n.Load()
	r.awaitSent(t, b.enqueue(t, message()))
	if n := asked.n.Load() - before; n != 0 {
		t.Errorf("after resume the pauses were read %d times, want never", n)
	}
}

// As in the middle of a rolling deploy, or after a restore without it.
func TestRelayWorksOnATableWithoutPausesAndHearsOfThemOnceItIsMigrated(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.exec(t, "drop table "+b.table.Names()["pause_table"])
	sender := newReceiver()
	r := b.sleeping(t, b.pool, sender, relay.Options{})
	if _, err := admin.Pause(t.Context(), b.pool, b.table, "webhook", ""); err == nil || !strings.Contains(err.Error(), "run relay migrate") {
		t.Errorf("got %v, want to be told to run relay migrate", err)
	}
	newBoxIn(t, b.dsn, b.table) // migrates
	b.pause(t, "webhook", "")
	awaitHeeded(t, r, 1)
	from := r.len()
	paused := b.enqueue(t, message())
	awaitLook(t, r, from)
	b.wantUntouched(t, paused)
}

// Otherwise it would send what is paused.
func TestRelayThatMayNotReadThePausesIsToldWhatToGrant(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	role := "relay_" + strings.ToLower(rand.Text())
	b.exec(t, "create role "+role)
	t.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	b.exec(t, "grant select, update on OUTBOX to "+role)
	pool := pgtest.PoolOn(t, b.dsn, func(config *pgxpool.Config) {
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "set role "+role)
			return err
		}
	})
	senders := relay.Senders{"webhook": newReceiver()}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := relay.Run(ctx, pool, b.table, senders, relay.Options{}); !errors.Is(err, outbox.ErrSchema) || !strings.Contains(err.Error(), "grant select on") {
		t.Errorf("Run: got %v, want to be told what to grant", err)
	}
	if _, err := relay.RunOnce(ctx, pool, b.table, senders, relay.Options{}); !errors.Is(err, outbox.ErrSchema) {
		t.Errorf("RunOnce: got %v, want to be told what to grant", err)
	}
	b.exec(t, "grant select on "+b.table.Names()["pause_table"]+" to "+role)
	id := b.enqueue(t, message())
	if s, err := relay.RunOnce(ctx, pool, b.table, senders, relay.Options{}); s.Sent != 1 || err != nil {
		t.Errorf("RunOnce with the grants of the README: got %+v, %v, want %s sent", s, err, id)
	}
}
