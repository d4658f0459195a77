package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

const (
	probeTimeout = 3 * time.Second
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
// Run uses up to four connections of the pool at once, each for one statement, and none while it sends, so a pool of one is
// enough. Outside the pool it has one connection that listens and, once it has been busy, one for the watch lock.
func Run(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, senders Senders, opts Options) error {
	r, err := newRelay(pool, table, senders, opts)
	if err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		if ctx.Err() != nil {
			r.log.Info("relay stopped", "table", table.String())
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
	l := newLoop(r)
	var g errgroup.Group
	g.Go(func() error { return l.listener.Run(ctx) })
	unwatched := make(chan struct{})
	g.Go(func() error {
		defer close(unwatched)
		return l.watch.Run(ctx)
	})
	g.Go(func() error { r.watchTrigger(ctx); return nil })
	g.Go(func() error { r.results.run(writing); return nil })
	stopped := r.stopAtEnd(ctx)
	l.run(ctx)
	stopped()
	<-unwatched
	if l.silenced {
		r.help(ctx) // this relay kept the writers silent, so the others have not heard of what came last
	}
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
		err := r.statement(ctx, r.look)
		if err == nil || errors.Is(err, outbox.ErrSchema) {
			return err
		}
		if err := retry.Sleep(ctx, retry.Delay(n)); err != nil {
			return err
		}
	}
}

func (r *relay) newListener() *notify.Listener {
	scope := "all"
	if r.opts.LeaveUnknownChannels {
		sum := sha256.Sum256([]byte(strings.Join(r.ask(0).Channels, "\x00")))
		scope = hex.EncodeToString(sum[:8])
	}
	return &notify.Listener{
		Bell:    r.bell,
		Channel: r.table.Channel(),
		Pauses:  r.repaused,
		Self:    uuid.NewString(),
		Scope:   scope,
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

func (r *relay) newWatch() *notify.Watch {
	w := notify.NewWatch()
	w.Connect, w.Log = r.connectListener, r.log
	w.Watch, w.Cross, w.Role = r.table.WatchLock(), r.table.CrossLock(), r.table.RoleLock()
	return w
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
		if retry.Sleep(ctx, triggerCheck) != nil {
			return
		}
	}
}
