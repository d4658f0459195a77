package relay

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// RunOnce claims one batch, sends it and returns when every result is written. The error wraps outbox.ErrInvalidOptions;
// failures of the database are counted in the Summary instead, and leave messages to the next run. When ctx ends, what
// has begun may finish within its timeout and the rest is given back.
func RunOnce(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, senders Senders, opts Options) (Summary, error) {
	r, err := newRelay(pool, table, senders, opts)
	if err != nil {
		return Summary{}, err
	}
	r.once = true
	if ctx.Err() != nil {
		return r.tally.s, nil
	}
	var batch *claim.Batch
	err = r.statement(ctx, func(ctx context.Context) (err error) {
		if r.store, _, err = claim.Open(ctx, pool, table); err != nil {
			return err
		}
		batch, err = r.store.Take(ctx, r.ask(opts.batch()))
		return err
	})
	if err != nil {
		return r.tally.s, nil
	}
	r.took(batch, opts.batch())
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.results.run(ctx)
	}()
	drained := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(drained)
		r.results.release(r.work.drain()...)
	})
	r.work.add(batch.Rows)
	r.work.wait()
	if !stop() {
		<-drained
	}
	r.results.close()
	<-written
	return r.tally.s, nil
}

// took counts and reports a claim.
func (r *relay) took(b *claim.Batch, limit int) {
	took := time.Since(b.TakenAt)
	r.pace.claimed(took)
	r.tally.claimed(len(b.Rows) + len(b.Closed))
	if r.opts.Observer.Claim != nil {
		r.opts.Observer.Claim(Claim{Limit: limit, Rows: len(b.Rows), Closed: len(b.Closed), Took: took})
	}
	r.closed(b)
}
