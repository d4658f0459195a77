package relay

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/notify"
)

const (
	// deafPoll is the longest wait between claims while notifications do not arrive.
	deafPoll = time.Second
	// herdDelay spreads the claims of relays that came back empty last time: another one was quicker, and will be again.
	// What it says then makes them stay where they are.
	herdDelay, herdSpread = 2 * time.Millisecond, 100 * time.Millisecond
)

// loop claims. Everything in it belongs to the goroutine of run.
type loop struct {
	r        *relay
	listener *notify.Listener
	watch    *notify.Watch
	tempo    tempo

	// loan is the listener's session while the loop has it.
	loan  *notify.Loan
	timer *time.Timer
	at    time.Time // when it fires, a wait of woken aside
	// due says why the timer will fire.
	due notify.Cause
	// waiting: it will fire for a look that was put off in woken.
	waiting bool
	// look: there may be something to claim.
	look bool
	// next is when the next row falls due as far as is known, zero for never; pollAt the time of the fallback poll.
	next, pollAt time.Time
	failures     int       // claims that failed in a row
	retryAt      time.Time // no claim before this, after one that failed
	// asked: the next claim answers an announcement. empty: the last one that did found nothing.
	asked, empty bool
	bounds       bounds
	lanes        []string // of the last claim
	partial      bool     // it left out channels that could carry no more
	bounded      bool     // it had a bound
	lastHelp     time.Time
	helpWait     time.Duration
	stale        bool // the pauses may have changed since they were read
	heeded       time.Time
	watching     bool // as last reported
	silenced     bool // writers were kept silent since the last crossing
}

func newLoop(r *relay) *loop {
	return &loop{r: r, listener: r.newListener(), watch: r.newWatch(), tempo: tempo{claim: &r.claims, write: &r.writes}, timer: time.NewTimer(0), due: notify.Start, bounds: bounds{}, helpWait: shortestHelp, heeded: time.Now()}
}

// run claims until ctx ends.
func (l *loop) run(ctx context.Context) {
	defer l.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.r.work.roomy:
			l.look = l.look || l.partial && l.r.work.more()
		case cause := <-l.r.bell.C():
			l.woken(cause)
		case l.loan = <-l.r.bell.Lent():
			l.woken(notify.Notified)
		case <-l.timer.C:
			l.rang()
		case <-l.watch.C():
			l.watched()
		case <-l.r.bell.Covered():
			l.covered()
		case <-l.r.repaused:
			l.stale = true
			l.heed(ctx)
		}
		for l.look && ctx.Err() == nil && !l.r.results.owing() && !time.Now().Before(l.retryAt) {
			if !l.claim(ctx) {
				break
			}
		}
		if loan := l.lent(); loan != nil {
			loan.Return()
		}
		if l.look {
			l.armStuck()
		}
		l.steer(ctx)
		if l.r.opts.Observer.Turn != nil {
			l.r.opts.Observer.Turn(max(0, time.Until(l.at)))
		}
	}
}

// lent hands on the loan, if there is one.
func (l *loop) lent() (loan *notify.Loan) {
	loan, l.loan = l.loan, nil
	return loan
}

// rang is called when the timer fires.
func (l *loop) rang() {
	if l.waiting {
		l.waiting, l.look = false, true
		return
	}
	l.woken(l.due)
}

// woken decides whether to look now. A relay that came back empty last time, and has peers or heard of what may be paused,
// waits a little first.
func (l *loop) woken(cause notify.Cause) {
	if l.r.opts.Observer.Wake != nil {
		l.r.opts.Observer.Wake(cause)
	}
	announced := cause == notify.Notified || cause == notify.Schedule || cause == notify.Due
	l.asked = l.asked || announced
	inVain := l.empty && (l.listener.Peers() || l.r.pausing() && cause == notify.Notified)
	if !announced || !inVain || l.watch.State() != notify.Off {
		l.look = true
		return
	}
	if !l.waiting {
		l.waiting = true
		l.timer.Reset(herdDelay + rand.N(herdSpread))
	}
}

// watched is called when the watch has changed its state.
func (l *loop) watched() {
	on := l.watch.State() != notify.Off
	l.tempo.crossing = time.Now()
	if !on {
		l.r.bell.Calm()
	}
	if on != l.watching && l.r.opts.Observer.Watching != nil {
		l.r.opts.Observer.Watching(on)
	}
	l.watching = on
	l.woken(notify.Watched)
}

// covered is called when another relay has looked and left nothing: neither a wait in woken nor a poll is needed then.
func (l *loop) covered() {
	all, due := l.r.bell.Rest()
	if !all || l.look || l.watch.State() != notify.Off {
		return
	}
	now := time.Now()
	switch {
	case due.IsZero():
		l.next = time.Time{}
	case !l.next.IsZero() && !l.next.After(now):
		return // it has fallen due since that look
	}
	l.setPoll(now)
	l.rearm()
}

// claim takes what can be carried. It returns false when there is no room or the claim failed.
func (l *loop) claim(ctx context.Context) bool {
	r := l.r
	if !l.heed(ctx) {
		return false
	}
	crossed := l.watch.State() == notify.Crossed // read before the claim begins
	limit, open := r.work.room(r.claims.get(), r.opts.batch())
	partial := open != nil
	open = slices.DeleteFunc(open, r.channelPaused) // alone, they would be looked for in all that is there
	if limit <= 0 || partial && len(open) == 0 {
		if crossed {
			l.watch.Done() // there is more to do, so the relay does not sleep
		}
		return false
	}
	ask := r.ask(limit)
	l.partial, l.lanes = partial, open
	if l.partial {
		ask.Channels = open
	} else {
		l.lanes = r.work.names
	}
	if !crossed {
		ask.DueFrom = l.bounds.from(l.lanes, l.partial, time.Now())
	}
	l.bounded = !ask.DueFrom.IsZero()
	b, err := r.take(ctx, ask, l.lent())
	if err != nil {
		l.failed()
		l.stale = l.stale || ask.Unpaused // its table may be gone
		return false
	}
	l.took(ctx, ask, b)
	b.Rows = nil // each row knows its batch, and one that is sent for long would keep them all
	if crossed {
		l.silenced = false
		l.watch.Done()
	}
	return true
}

// failed puts off the next claim.
func (l *loop) failed() {
	l.retryAt = time.Now().Add(retry.Delay(l.failures))
	l.failures++
}

// took notes what a claim brought, and sets the timer.
func (l *loop) took(ctx context.Context, ask claim.Ask, b *claim.Batch) {
	now := time.Now()
	n := len(b.Rows) + len(b.Closed)
	l.failures = 0
	// What the bound hides may be what the wake-up was for. A relay that watches has had none, and looks again soon; one that
	// passes over what is paused may have to pass over a lot.
	again := n == 0 && l.bounded && l.watch.State() != notify.Watching && !ask.Unpaused
	l.look = n >= ask.Limit || again
	l.bounds.took(l.lanes, l.bounded, ask.Unpaused && n < ask.Limit, b, now)
	if again {
		l.bounds.lookAgain(l.lanes)
		return
	}
	if n > 0 || l.asked {
		l.empty = n == 0
	}
	l.asked = false
	l.tempo.claimed(now, n)
	if l.look {
		return
	}
	l.next = time.Time{}
	known := b.Now.Add(ask.Horizon) // by then the poll has looked
	if !b.Next.IsZero() {
		known = b.Next
		l.next = l.dueTime(now, b)
	}
	l.r.bell.SetNext(known)
	leftNothing := !l.bounded && !l.partial && !ask.Unpaused && b.Snapshot != ""
	if leftNothing {
		l.r.bell.Saw(b.Snapshot)
	}
	l.setPoll(now)
	l.rearm()
	if leftNothing && l.watch.State() == notify.Off && l.listener.Peers() {
		_ = l.r.statement(ctx, func(ctx context.Context) error { return l.listener.Seen(ctx, b.Now, b.Snapshot) }) // only a hint
	}
}

// dueTime is when the next row falls due. The server said what time it was at some moment between the question and the answer.
func (l *loop) dueTime(now time.Time, b *claim.Batch) time.Time {
	if !b.Next.After(b.Now) {
		return now.Add(lockedDelay)
	}
	return b.TakenAt.Add(now.Sub(b.TakenAt)/2 + b.Next.Sub(b.Now))
}

// lockedDelay is the wait before another look for a row that is due and that a claim did not get.
const lockedDelay = 5 * time.Millisecond

// setPoll sets the time of the next poll. After a claim with a bound it is the time for one without.
func (l *loop) setPoll(now time.Time) {
	l.pollAt = now.Add(l.pollWait())
	if !l.bounded {
		return
	}
	if full := l.bounds.until(l.lanes, l.partial); full.Before(l.pollAt) {
		l.pollAt = full
	}
}

// rearm sets the timer for the next due row or the next poll, whichever comes first.
func (l *loop) rearm() {
	if !l.next.IsZero() && l.next.Before(l.pollAt) {
		l.arm(l.next, notify.Due)
		return
	}
	if l.watch.State() != notify.Off {
		l.arm(l.pollAt, notify.Watched)
		return
	}
	l.arm(l.pollAt, notify.Poll)
}

// armStuck sets the timer while there is something to claim and it cannot be: after a failure, or while no sender is free or
// results are owed. Both give a sign when they end; a sender that hangs gives none, and the others must hear of it.
func (l *loop) armStuck() {
	now := time.Now()
	switch {
	case l.retryAt.After(now):
		l.arm(l.retryAt, notify.Poll)
	case l.watch.State() != notify.Off || l.listener.Peers():
		l.arm(now.Add(l.helpWait), notify.Help)
	default:
		l.arm(now.Add(l.pollWait()), notify.Poll)
	}
}

func (l *loop) arm(at time.Time, due notify.Cause) {
	l.at, l.due, l.waiting = at, due, false
	l.timer.Reset(time.Until(at))
}

// pollWait is the time to the next poll: the fallback, up to a fifth shorter at random so that relays do not poll
// together, or the tempo of a relay that watches.
func (l *loop) pollWait() time.Duration {
	if s := l.watch.State(); s != notify.Off {
		return l.tempo.pause(s, l.listener.Up())
	}
	d := l.r.opts.pollInterval()
	if !l.listener.Up() {
		d = min(d, deafPoll)
	}
	return d - rand.N(d/5+1)
}

// steer begins and ends the watch, and calls for help with what cannot be carried.
func (l *loop) steer(ctx context.Context) {
	now := time.Now()
	switch l.watch.State() {
	case notify.Off:
		if l.mayWatch() && l.tempo.busy(l.r.bell) {
			l.watch.Begin()
		}
	case notify.Watching:
		l.silenced = true
		if !l.look && l.tempo.quiet(now) && l.listener.Up() {
			l.watch.End()
		}
	case notify.Crossing, notify.Crossed:
		l.silenced = true
	}
	switch {
	case !l.look && !l.partial:
		l.helpWait = shortestHelp
	case l.listener.Peers() && now.Sub(l.lastHelp) > l.helpWait:
		l.lastHelp = now
		l.helpWait = min(2*l.helpWait, longestHelp)
		l.r.help(ctx)
	}
}

// mayWatch: a relay that leaves channels to others must not silence their messages, and one that hears nothing could not
// end the watch. What is announced and paused is no work.
func (l *loop) mayWatch() bool {
	return !(l.r.pausing() && l.empty) && !l.r.opts.NoWatch && !l.r.opts.LeaveUnknownChannels && l.listener.Up()
}

// Between these a relay that has more than it can carry waits from one call for help to the next.
const shortestHelp, longestHelp = 50 * time.Millisecond, time.Second
