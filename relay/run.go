package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

const (
	probeTimeout = 3 * time.Second
	// deafPoll is the longest wait between claims while notifications do not arrive.
	deafPoll = time.Second
	// triggerCheck is how often the relay looks whether the insert trigger is still there.
	triggerCheck = time.Minute
	// lastWrites is how long a relay that was asked to stop tries to write its last results.
	lastWrites = 10 * time.Second
)

// Run sends messages until ctx ends and then returns nil. It survives any outage of the database, also one at its start.
// The error wraps outbox.ErrInvalidOptions or outbox.ErrSchema.
//
// When ctx ends nothing more is claimed, what was claimed and not begun is given back, and what is being sent may finish
// within its timeout and is recorded. After a crash, messages that were being sent are sent again when their lease ends.
//
// Run uses up to two connections of the pool at once and none while it sends, so a pool of one is enough; one more
// connection, outside the pool, listens.
func Run(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, senders Senders, opts Options) error {
	r, err := newRelay(pool, table, senders, opts)
	if err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for _, warning := range r.opts.warnings() {
		r.log.Warn("unwise options", "warning", warning)
	}
	r.log.Info("relay started", "table", table.String())
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	listener := r.listener()
	var g errgroup.Group
	g.Go(func() error { return listener.Run(ctx) })
	g.Go(func() error { r.watchTrigger(ctx); return nil })
	g.Go(func() error { r.results.run(writing); return nil })
	stopped := r.stopAtEnd(ctx)
	r.loop(ctx, listener)
	stopped()
	r.work.wait()
	r.results.close()
	limit := time.AfterFunc(lastWrites, stopWriting)
	defer limit.Stop()
	err = g.Wait()
	r.log.Info("relay stopped", "table", table.String())
	return err
}

// open looks at the table, and waits for a database that is away.
func (r *relay) open(ctx context.Context) error {
	for n := 0; ; n++ {
		err := r.statement(ctx, func(ctx context.Context) (err error) {
			r.store, _, err = claim.Open(ctx, r.pool, r.table)
			return err
		})
		if err == nil || errors.Is(err, outbox.ErrSchema) {
			return err
		}
		if err := sleep(ctx, retryDelay(n)); err != nil {
			return err
		}
	}
}

func (r *relay) listener() *notify.Listener {
	return &notify.Listener{
		Bell:    r.bell,
		Channel: r.table.Channel(),
		Connect: r.connectListener,
		Notify: func(ctx context.Context, payload string) error {
			err := r.store.Notify(ctx, payload)
			r.dropSilent(err)
			return err
		},
		ProbeInterval: r.opts.probeInterval(),
		ProbeTimeout:  probeTimeout,
		Changed: func(err error) {
			r.bell.Ring(notify.Poll) // the poll interval has changed
			if r.opts.Observer.Listening != nil {
				r.opts.Observer.Listening(err)
			}
		},
		Log: r.log,
	}
}

// loop claims until ctx ends. It owns the timer; look says that there may be something to claim.
func (r *relay) loop(ctx context.Context, listener *notify.Listener) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	r.bell.Ring(notify.Start)
	look, failures, due := false, 0, notify.Poll
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.work.roomy:
		case cause := <-r.bell.C():
			look = r.woken(cause)
		case <-timer.C:
			look = r.woken(due)
		}
		for look && ctx.Err() == nil && !r.results.owing() {
			limit := min(r.opts.batch(), r.work.room(r.pace.ahead(r.opts.concurrency(), r.opts.batch())))
			if limit <= 0 {
				break // a sender that becomes free rings
			}
			wait, full, err := r.claim(ctx, limit)
			if err != nil {
				failures++
				due = notify.Poll
				timer.Reset(retryDelay(failures - 1))
				break
			}
			failures, look = 0, full
			poll := r.pollWait(listener)
			due = notify.Poll
			if wait < poll {
				due = notify.Due
			}
			timer.Reset(min(wait, poll))
		}
	}
}

func (r *relay) woken(cause notify.Cause) (look bool) {
	if r.opts.Observer.Wake != nil {
		r.opts.Observer.Wake(cause)
	}
	return true
}

// claim takes up to limit rows and hands them to the senders. It tells how long to wait for the next due row, and whether
// there may be more.
func (r *relay) claim(ctx context.Context, limit int) (wait time.Duration, full bool, err error) {
	r.bell.Looking()
	var b *claim.Batch
	err = r.statement(ctx, func(ctx context.Context) (err error) {
		b, err = r.store.Take(ctx, r.ask(limit))
		return err
	})
	if err != nil {
		if r.opts.Observer.Claim != nil {
			r.opts.Observer.Claim(Claim{Limit: limit, Err: err})
		}
		return 0, false, err
	}
	received := time.Now()
	r.took(b, limit)
	r.begin(ctx, b.Rows)
	r.bell.SetNext(b.Next)
	wait = notify.MaxPollInterval
	if !b.Next.IsZero() {
		wait = b.Next.Sub(b.Now) - time.Since(received)
	}
	return wait, len(b.Rows)+len(b.Closed) >= limit, nil
}

// pollWait is the time to the next fallback poll, up to a fifth shorter at random, so that relays do not poll together.
func (r *relay) pollWait(l *notify.Listener) time.Duration {
	d := r.opts.pollInterval()
	if !l.Up() {
		d = min(d, deafPoll)
	}
	return d - rand.N(d/5+1)
}

// watchTrigger says once when the insert trigger is missing or disabled, and once when it is back.
func (r *relay) watchTrigger(ctx context.Context) {
	last := outbox.TriggerOn
	for {
		var in outbox.Inspection
		err := r.statement(ctx, func(ctx context.Context) (err error) {
			in, err = r.table.Inspect(ctx, r.pool)
			return err
		})
		if err == nil && in.Exists && in.Trigger != last {
			last = in.Trigger
			if last == outbox.TriggerOn {
				r.log.Info("the insert trigger is back")
			} else {
				r.log.Warn("inserts do not wake the relay, polling: run relay migrate, or enable the trigger", "table", r.table.String(), "trigger", string(last))
			}
		}
		if sleep(ctx, triggerCheck) != nil {
			return
		}
	}
}
