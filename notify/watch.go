package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// Watch keeps the writers from ringing while this relay looks at the table anyway.
//
// A commit that notifies takes one lock for the whole cluster and holds it while its WAL is flushed. So a busy relay asks
// for silence, and polls. Two advisory locks make that safe, W (watch) and X (crossing); docs/design.md has the protocol
// and tests/model its proof. From the relay's side:
//
//	Off ──Begin──► R got? ──► Watching: ask for W, hold it, poll ──End──► Crossing: W is back, ask for X, poll
//	 ▲                                                                      │ granted: every writer that was silent has ended
//	 └───────Done: X and R are back ◄── Crossed: claim once more ◄──────────┘
//
// R (role) admits one relay at a time, so that several do not keep each other from sleeping.
//
// From just before W is asked for until Done the relay owes the writers a look: it must poll, whatever happens to the
// session that holds the locks. When the session dies, the server gives the locks back and writers ring again, but those
// that were silent before may not have committed yet: the crossing has to be made up for on a new session.
//
// Methods may be called by one goroutine while Run runs in another.
type Watch struct {
	// Connect dials a session of its own, straight to the server: through a pooler in transaction mode a session's lock
	// would stay behind.
	Connect            func(context.Context) (*pgx.Conn, error)
	Watch, Cross, Role outbox.Lock
	Log                *slog.Logger

	state   atomic.Int32
	changed chan struct{} // to the relay: look at State
	command chan struct{} // to Run: Begin, End or Done
	want    atomic.Bool   // Begin: true, End: false
	done    atomic.Bool
	notNow  atomic.Int64 // another relay watches: no Begin before this time, in ns since 1970

	conn *pgx.Conn // Run's
	pid  uint32    // of the session that may hold locks
}

// WatchState is where a relay stands with the writers.
type WatchState int32

const (
	Off      WatchState = iota // writers ring
	Watching                   // writers may be silent: poll
	Crossing                   // writers that were silent may not have committed yet: poll
	Crossed                    // they all have: claim once more, then Done
)

// lockWait bounds each wait for a lock: a session that waits holds back vacuum. The relay claims in between.
const lockWait = 50 * time.Millisecond

// NewWatch returns a Watch that is off. Its exported fields are set before Run.
func NewWatch() *Watch {
	return &Watch{changed: make(chan struct{}, 1), command: make(chan struct{}, 1)}
}

// C has an element when State has changed.
func (w *Watch) C() <-chan struct{} { return w.changed }

// State tells where the relay stands. Anything but Off obliges it to poll.
func (w *Watch) State() WatchState { return WatchState(w.state.Load()) }

// Begin asks for silence. It does not block; State becomes Watching if no other relay watches.
func (w *Watch) Begin() {
	if w.State() == Off && time.Now().UnixNano() >= w.notNow.Load() && !w.want.Swap(true) {
		signal(w.command)
	}
}

// End lets the writers ring again. State becomes Crossing and then Crossed.
func (w *Watch) End() {
	if w.want.Swap(false) {
		signal(w.command)
	}
}

// Done says that a claim which began in Crossed has ended.
func (w *Watch) Done() {
	w.done.Store(true)
	signal(w.command)
}

func (w *Watch) enter(s WatchState) {
	if WatchState(w.state.Swap(int32(s))) != s {
		signal(w.changed)
	}
}

// Run serves Begin, End and Done until ctx ends. It then makes the crossing within a second, so that the caller can wake
// other relays for what silent writers have left.
func (w *Watch) Run(ctx context.Context) error {
	defer w.close()
	for w.await(ctx, func() bool { return w.want.Load() }) {
		if err := w.round(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("session of the watch lock lost, writers ring again", "err", retry.Reason(err))
			w.recover(ctx)
		}
		w.enter(Off)
	}
	return nil
}

// await returns true when the condition holds and false when ctx has ended.
func (w *Watch) await(ctx context.Context, condition func() bool) bool {
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-w.command:
		}
	}
	return ctx.Err() == nil
}

// round is one way around the drawing above. An error means that the session is gone and the crossing is owed.
func (w *Watch) round(ctx context.Context) error {
	if w.conn == nil {
		if err := w.dial(ctx); err != nil {
			w.postpone(err) // nothing was asked of the writers yet
			return nil
		}
	}
	switch got, err := w.try(ctx, w.Role); {
	case err != nil:
		w.close()
		w.postpone(err)
		return nil
	case !got:
		w.postpone(nil)
		return nil
	}
	w.enter(Watching) // before W is asked for: from then on a writer may be silent
	held := false
	for w.want.Load() && ctx.Err() == nil && !held {
		var err error
		if held, err = w.wait(ctx, w.Watch); err != nil {
			return err
		}
	}
	if err := w.hold(ctx); err != nil {
		return err
	}
	if held {
		switch held, err := w.unlock(ctx, w.Watch); {
		case err != nil:
			return err
		case !held:
			return errors.New("the watch lock was no longer held")
		}
	}
	return w.cross(ctx)
}

// hold returns after End. It looks after the session, since a relay that believes in a lock which the server has given back
// would poll while the writers ring.
func (w *Watch) hold(ctx context.Context) error {
	check := time.NewTicker(5 * time.Second)
	defer check.Stop()
	for w.want.Load() {
		select {
		case <-ctx.Done():
			w.want.Store(false)
		case <-w.command:
		case <-check.C:
			var alive bool
			if err := w.ask(ctx, &alive, "select true"); err != nil {
				return err
			}
		}
	}
	return nil
}

// cross waits for every writer that decided before, has the relay claim once more, and lets go.
func (w *Watch) cross(ctx context.Context) error {
	w.enter(Crossing)
	for begun := time.Now(); ; {
		held, err := w.wait(ctx, w.Cross)
		if err != nil {
			return err
		}
		if held {
			break
		}
		if ctx.Err() != nil && time.Since(begun) > time.Second {
			return nil // the session ends here, and its locks with it
		}
	}
	w.done.Store(false)
	w.enter(Crossed)
	w.await(ctx, w.done.Load)
	var all bool
	return w.ask(ctx, &all, "select pg_advisory_unlock_all() is not null")
}

// recover makes up for the crossing on a new session. The dead one may still hold its locks, which keeps the writers
// silent: it is ended first. When another relay has the role by then, its own crossing, which comes later, waits for the
// same writers.
func (w *Watch) recover(ctx context.Context) {
	w.enter(Crossing)
	w.want.Store(false)
	dead := w.pid
	for n := 0; ctx.Err() == nil; n++ {
		w.close()
		if n > 0 && retry.Sleep(ctx, retry.Delay(n)) != nil {
			return
		}
		if w.dial(ctx) != nil {
			continue
		}
		gone, err := w.bury(ctx, dead)
		if err != nil || !gone {
			continue
		}
		got, err := w.try(ctx, w.Role)
		if err != nil {
			continue
		}
		if !got || w.cross(ctx) == nil {
			return
		}
		dead = w.pid
	}
}

// bury ends the session with this pid if it is one of ours that still holds a lock, and tells whether it is gone.
func (w *Watch) bury(ctx context.Context, pid uint32) (gone bool, err error) {
	const ask = `select count(pg_terminate_backend(pid)) = 0 from pg_catalog.pg_locks
		where locktype = 'advisory' and objsubid = 2 and classid::bigint = $1::bigint and objid::bigint = $2::bigint and pid = $3::int
		  and database = (select oid from pg_catalog.pg_database where datname = current_database())`
	err = w.ask(ctx, &gone, ask, int64(uint32(w.Role.Class)), int64(uint32(w.Role.Key)), int32(pid))
	return gone, err
}

func (w *Watch) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	conn, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	if err := prepareSession(ctx, conn, WatchSession); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, fmt.Sprintf("set lock_timeout = %d", lockWait.Milliseconds())); err != nil {
		_ = conn.Close(ctx)
		return err
	}
	var pid int32
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil { // the server's, not a pooler's
		_ = conn.Close(ctx)
		return err
	}
	w.conn, w.pid = conn, uint32(pid)
	return nil
}

func (w *Watch) close() {
	if w.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.conn.Close(ctx)
	w.conn = nil
}

// postpone gives up this Begin. Not for ever: the relay that watches now may stop.
func (w *Watch) postpone(err error) {
	if err != nil {
		w.Log.Debug("no session for the watch lock", "err", retry.Reason(err))
	}
	w.notNow.Store(time.Now().Add(time.Second/2 + rand.N(time.Second)).UnixNano())
	w.want.Store(false)
}

func (w *Watch) try(ctx context.Context, l outbox.Lock) (got bool, err error) {
	err = w.ask(ctx, &got, "select pg_try_advisory_lock($1::int, $2::int)", l.Class, l.Key)
	return got, err
}

// wait queues for a lock for lockWait at most. While it waits, writers that try to share the lock fail already.
func (w *Watch) wait(ctx context.Context, l outbox.Lock) (got bool, err error) {
	err = w.ask(ctx, &got, "select pg_advisory_lock($1::int, $2::int) is not null", l.Class, l.Key)
	if outbox.SQLState(err) != "55P03" { // lock_not_available
		return got, err
	}
	// The timeout may strike just after the lock was granted, and a session's lock survives the failed statement: without
	// this it would stay for ever and keep the writers silent.
	_, err = w.unlock(ctx, l)
	return false, err
}

func (w *Watch) unlock(ctx context.Context, l outbox.Lock) (held bool, err error) {
	err = w.ask(ctx, &held, "select pg_advisory_unlock($1::int, $2::int)", l.Class, l.Key)
	return held, err
}

// ask has a deadline of its own: a lock must be given back in order when ctx has ended, and a dead link must be noticed.
func (w *Watch) ask(ctx context.Context, into *bool, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	return w.conn.QueryRow(ctx, statement, args...).Scan(into)
}
