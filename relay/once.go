package relay

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// RunOnce claims one batch, sends it and returns when every result is written. The error wraps outbox.ErrInvalidOptions or
// outbox.ErrSchema; failures of the database are counted in the Summary instead, and leave messages to the next run. When
// ctx ends, what has begun may finish within its timeout and the rest is given back.
func RunOnce(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, senders Senders, opts Options) (Summary, error) {
	r, err := newRelay(pool, table, senders, opts)
	if err != nil {
		return Summary{}, err
	}
	r.once = true
	if ctx.Err() != nil {
		return r.tally.s, nil
	}
	err = r.statement(ctx, r.look)
	if errors.Is(err, outbox.ErrSchema) {
		return r.tally.s, err // misuse, as wrong options are: no later run mends it
	}
	if err != nil {
		return r.tally.s, nil
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.results.run(context.WithoutCancel(ctx))
	}()
	stopped := r.stopAtEnd(ctx)
	if _, err := r.take(ctx, r.ask(opts.batch()), nil); err == nil {
		r.work.wait()
	}
	stopped()
	r.results.close()
	<-written
	return r.tally.s, nil
}

// begin hands claimed rows to the senders, or gives them back when the end has come meanwhile.
func (r *relay) begin(ctx context.Context, rows []*claim.Row) {
	if ctx.Err() == nil {
		rows = r.work.add(rows)
	}
	r.results.release(rows...)
}

// stopAtEnd sees to it that nothing begins once ctx has ended, also while a claim is under way, and that what was claimed
// is given back. The function that it returns waits for that.
func (r *relay) stopAtEnd(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	end := func() {
		defer close(done)
		r.results.release(r.work.stop()...)
	}
	stop := context.AfterFunc(ctx, end)
	return func() {
		if stop() { // it has not begun, although ctx may have ended a moment ago
			if ctx.Err() == nil {
				return
			}
			end()
		}
		<-done
	}
}
