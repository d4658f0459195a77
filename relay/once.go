package relay

import (
	"context"

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
	err = r.statement(ctx, func(ctx context.Context) (err error) {
		r.store, _, err = claim.Open(ctx, pool, table)
		return err
	})
	if err != nil {
		return r.tally.s, nil
	}
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
	if _, err := r.take(ctx, r.ask(opts.batch())); err == nil {
		r.work.wait()
	}
	if !stop() {
		<-drained
	}
	r.results.close()
	<-written
	return r.tally.s, nil
}
