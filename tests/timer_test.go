package tests

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// in commits a message that is due after d, by the database's clock.
func (b *box) enqueueIn(t *testing.T, d time.Duration) (id string) {
	t.Helper()
	query := b.fillIn(`insert into OUTBOX (organizacion_id, canal, destino, plantilla, clave_idempotencia, programado_para)
		values (gen_random_uuid(), 'webhook', 'd', 'p', gen_random_uuid()::text, now() + $1::interval) returning id::text`)
	if err := b.pool.QueryRow(t.Context(), query, d).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func onTime(t *testing.T, r *running, id string) {
	t.Helper()
	start, _, _ := await(t, r.journal, 0, "a scheduled message", func(s sending) bool { return s.ID == id })
	r.awaitSent(t, id)
	quick(t, "a scheduled message after it was due", start.Late) // the next look would come minutes later
	t.Logf("late: %v", start.Late)
}

func TestScheduledMessageLeavesWhenItIsDue(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	onTime(t, r, b.enqueueIn(t, 300*time.Millisecond))
}

func TestMessageDueEarlierThanTheOneAwaitedLeavesOnTime(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	from := r.len()
	b.enqueueIn(t, 5*time.Minute)
	await(t, r.journal, from, "the look that sets the timer", func(relay.Claim) bool { return true })
	first, second := b.enqueueIn(t, 600*time.Millisecond), b.enqueueIn(t, 300*time.Millisecond)
	onTime(t, r, second)
	onTime(t, r, first)
}

func TestMessageDueBeyondTheAnnouncedTimeIsSeenByTheNextLook(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	far := b.enqueueIn(t, 20*time.Minute)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	b.exec(t, "update OUTBOX set programado_para = now() + interval '300 ms' where id = $1::uuid", far) // the minutes have passed
	r.awaitSent(t, b.enqueue(t, message()))                                                             // any look
	onTime(t, r, far)
}

func TestRetryLeavesWhenItIsDue(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var attempts atomic.Int32
	flaky := transporte.Func(func(context.Context, transporte.Message) (string, error) {
		if attempts.Add(1) == 2 {
			return "", &transporte.Error{Category: outbox.Network, Code: "503"}
		}
		return "", nil
	})
	r := b.sleeping(t, b.pool, flaky, relay.Options{Backoff: outbox.Backoff{Base: 300 * time.Millisecond, Jitter: -1}})
	id := b.enqueue(t, message())
	retry, _, _ := await(t, r.journal, 0, "the second attempt", func(s sending) bool { return s.ID == id && s.Number == 2 })
	quick(t, "the retry after it was due", retry.Late)
	r.awaitSent(t, id)
}

func TestExpiredLeaseIsTakenWhenItEnds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	id := b.enqueue(t, message())
	b.exec(t, "update OUTBOX set estado = 'procesando', intentos = 1, bloqueado_hasta = now() + interval '500 ms' where id = $1::uuid", id)
	r := b.run(t, b.pool, newReceiver(), relay.Options{PollInterval: onlyWakeUps})
	onTime(t, r, id)
	if _, attempts := b.row(t, id); attempts != 2 {
		t.Errorf("got %d attempts, want 2: the one that died and this one", attempts)
	}
}

func TestMessagesCommittedBeforeTheStartAreSentAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	id := b.enqueue(t, message())
	before := time.Now()
	r := b.run(t, b.pool, newReceiver(), relay.Options{PollInterval: onlyWakeUps})
	_, at := r.delivery(t, id)
	quick(t, "the first message after the start", at.Sub(before))
}

// A listener that is dialled again hears nothing of what is committed before its LISTEN.
func TestMessageCommittedWhileNobodyListensIsSentAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	d := newDialling(t, b)
	r := b.sleeping(t, d.pool, newReceiver(), relay.Options{})
	proceed := d.holdListener(t, b)
	id := b.enqueue(t, message())
	before := time.Now()
	close(proceed)
	_, at := r.delivery(t, id)
	quick(t, "a message committed before LISTEN", at.Sub(before))
}

func TestMessageCommittedBetweenListenAndTheFirstLookIsSentAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	enqueued := make(chan string, 1)
	var once atomic.Bool
	opts := relay.Options{PollInterval: onlyWakeUps}
	opts.Observer.Wake = func(cause notify.Cause) { // before the claim that this wake-up leads to
		if cause == notify.Listen && once.CompareAndSwap(false, true) {
			enqueued <- b.enqueue(t, message())
		}
	}
	r := b.run(t, b.pool, newReceiver(), opts)
	id := receive(t, "the wake-up after LISTEN", enqueued)
	before := time.Now()
	_, at := r.delivery(t, id)
	quick(t, "a message committed before the first look", at.Sub(before))
}

// As after a transaction that took minutes. A relay that has just looked at everything begins its next claims near the last
// due time that it has seen, and must not fall asleep before it has looked below.
func TestMessageDueLongAgoIsNotPassedOverBesideAFreshOne(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	for range 3 {
		old, fresh := uuid.NewString(), uuid.NewString()
		b.commit(t, func(tx pgx.Tx) error {
			return errors.Join(b.in(tx, insertOne, old), b.in(tx, insertOne, fresh),
				b.in(tx, "update OUTBOX set programado_para = now() - interval '5 minutes' where id = $1::uuid", old))
		})
		committed := time.Now()
		r.awaitSent(t, fresh)
		_, at := r.delivery(t, old)
		quick(t, "a message due long ago", at.Sub(committed)-2*time.Second) // the next look at everything
	}
}

// Transactions do not commit in the order in which they began: nothing may depend on a position that only grows.
func TestTransactionThatCommitsLateIsSentAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	early, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Rollback(context.Background())
	first, err := b.table.Enqueue(t.Context(), early, message())
	if err != nil {
		t.Fatal(err)
	}
	r.awaitSent(t, b.enqueue(t, message()))
	before := time.Now()
	if err := early.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, at := r.delivery(t, first.ID)
	quick(t, "the transaction that committed late", at.Sub(before))
}
