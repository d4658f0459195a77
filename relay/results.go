package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// results writes what became of claimed rows, in batches that form by themselves: while one write is on its way the next
// results gather, and a lone one goes out at once.
type results struct {
	r *relay
	// wake has room for one: there is something to write, or the end has come.
	wake chan struct{}
	// begun is when the write under way began, nil when none is.
	begun atomic.Pointer[time.Time]

	mu       sync.Mutex
	pending  []claim.Result
	released []*claim.Row
	closed   bool
}

func newResults(r *relay) *results { return &results{r: r, wake: make(chan struct{}, 1)} }

func (q *results) add(result claim.Result) {
	q.mu.Lock()
	q.pending = append(q.pending, result)
	q.mu.Unlock()
	signal(q.wake)
}

func (q *results) release(rows ...*claim.Row) {
	if len(rows) == 0 {
		return
	}
	q.mu.Lock()
	q.released = append(q.released, rows...)
	q.mu.Unlock()
	signal(q.wake)
}

// close lets run return once everything is written.
func (q *results) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.wake)
}

// run writes until close. ctx bounds how long it tries when the database is away.
func (q *results) run(ctx context.Context) {
	for range q.wake {
		for {
			q.mu.Lock()
			pending, released, closed := q.pending, q.released, q.closed
			q.pending, q.released = nil, nil
			q.mu.Unlock()
			if len(pending) == 0 && len(released) == 0 {
				if closed {
					return
				}
				break
			}
			q.record(ctx, pending)
			q.giveBack(ctx, released)
		}
	}
}

// record writes a batch. A batch that the database refuses for what is in it, or for a row that another transaction holds,
// is written one by one, so that one row does not hold up the others.
func (q *results) record(ctx context.Context, batch []claim.Result) {
	if len(batch) == 0 {
		return
	}
	var ours []bool
	err := q.persist(ctx, func(ctx context.Context) (err error) {
		ours, err = q.r.store.Record(ctx, batch)
		return err
	})
	if err != nil && !outage(err) && len(batch) > 1 {
		for i := range batch {
			q.record(ctx, batch[i:i+1])
		}
		return
	}
	if rowHeld(err) && !q.r.once && ctx.Err() == nil {
		q.add(batch[0])
		return
	}
	for i, result := range batch {
		outcome := outcomeOf(result)
		switch {
		case err != nil:
			outcome = Errored
		case !ours[i]:
			outcome = Lost
		case outcome == Retried:
			// The claim that set the timer knew the end of the lease, not this. The server's clock, as far as it is known here.
			now := result.Row.Batch.Now.Add(time.Since(result.Row.Batch.TakenAt))
			q.r.bell.Announce(now.Add(result.RetryIn))
		}
		q.r.recorded(result, outcome)
	}
}

func (q *results) giveBack(ctx context.Context, rows []*claim.Row) {
	if len(rows) == 0 {
		return
	}
	var ours []bool
	err := q.persist(ctx, func(ctx context.Context) (err error) {
		ours, err = q.r.store.Release(ctx, rows)
		return err
	})
	if err != nil && !outage(err) && len(rows) > 1 {
		for i := range rows {
			q.giveBack(ctx, rows[i:i+1])
		}
		return
	}
	if rowHeld(err) && !q.r.once && ctx.Err() == nil {
		q.release(rows[0])
		return
	}
	for i, row := range rows {
		outcome := Released
		switch {
		case err != nil:
			outcome = Errored
		case !ours[i]:
			outcome = Lost
		}
		q.r.recorded(claim.Result{Row: row}, outcome)
	}
	if err == nil {
		q.r.help(ctx) // they are due: whoever has time may take them
	}
}

// overdue is how long a write may take before the relay stops claiming: less than what is left of a lease after a send.
const overdue = sendMargin / 2

// owing tells that results are not written in time. The relay then claims nothing: a row whose lease has run out could be
// sent again although its result is here.
func (q *results) owing() bool {
	begun := q.begun.Load()
	return begun != nil && time.Since(*begun) > overdue
}

// onceRetries is how often RunOnce tries again to write: a session that was cut is no reason to send a message twice.
const onceRetries = 3

// persist tries until it works, the database refuses the data, or the time is over. The fence makes a late write safe,
// and as long as nobody has taken the row since, it is still the right one.
func (q *results) persist(ctx context.Context, write func(context.Context) error) error {
	begun := time.Now()
	q.begun.Store(&begun)
	defer func() {
		q.begun.Store(nil)
		if time.Since(begun) > overdue {
			q.r.bell.Ring(notify.Poll) // the loop has been waiting for this
		}
	}()
	for n := 0; ; n++ {
		asked := time.Now()
		err := q.r.statement(ctx, write)
		if err == nil {
			q.r.writes.add(time.Since(asked))
		}
		passes := outage(err) || rowHeld(err) && q.r.once
		if err == nil || !passes || q.r.once && n == onceRetries || retry.Sleep(ctx, retry.Delay(n)) != nil {
			return err
		}
	}
}

// outcomeOf is the outcome of a result once it is written.
func outcomeOf(result claim.Result) Outcome {
	switch result.State {
	case outbox.Sent:
		return Sent
	case outbox.Failed:
		return Failed
	case outbox.Discarded:
		return Discarded
	}
	return Retried
}
