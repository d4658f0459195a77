package relay

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// results writes what became of claimed rows, in batches that form by themselves: while one write is on its way the next
// results gather, and a lone one goes out at once.
type results struct {
	r *relay
	// wake has room for one: there is something to write, or the end has come.
	wake chan struct{}
	// owing is true while results cannot be written. The relay then claims nothing: a row whose lease has run out could be
	// sent again although its result is here.
	owing atomic.Bool

	mu       sync.Mutex
	pending  []claim.Result
	released []claim.Row
	closed   bool
}

func newResults(r *relay) *results { return &results{r: r, wake: make(chan struct{}, 1)} }

func (q *results) add(result claim.Result) {
	q.mu.Lock()
	q.pending = append(q.pending, result)
	q.mu.Unlock()
	signal(q.wake)
}

func (q *results) release(rows ...claim.Row) {
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

// record writes a batch. A batch that the database refuses for what is in it is written one by one, so that one bad
// result does not hold up the others.
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
	retried := false
	for i, result := range batch {
		outcome := outcomeOf(result)
		switch {
		case err != nil:
			outcome = Errored
		case !ours[i]:
			outcome = Lost
		}
		q.r.recorded(result, outcome)
		retried = retried || outcome == Retried
	}
	if retried {
		q.r.bell.Ring(notify.Retry) // its time may come before the one for which the relay waits
	}
}

func (q *results) giveBack(ctx context.Context, rows []claim.Row) {
	if len(rows) == 0 {
		return
	}
	var ours []bool
	err := q.persist(ctx, func(ctx context.Context) (err error) {
		ours, err = q.r.store.Release(ctx, rows)
		return err
	})
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

// persist tries until it works, the database refuses the data, or the time is over. The fence makes a late write safe,
// and as long as nobody has taken the row since, it is still the right one.
func (q *results) persist(ctx context.Context, write func(context.Context) error) error {
	for n := 0; ; n++ {
		err := q.r.statement(ctx, write)
		if err != nil && outage(err) && !q.r.once {
			q.owing.Store(true)
			if sleep(ctx, retryDelay(n)) == nil {
				continue
			}
		}
		if q.owing.Swap(false) {
			q.r.bell.Ring(notify.Poll) // the loop has been waiting for this
		}
		return err
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
