package notify

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bell collects wake-ups. It holds one at most: many that come while the relay is busy are one reason to look again.
// It is safe for concurrent use.
type Bell struct {
	rung chan Cause

	mu sync.Mutex
	// known is the next due time that the relay's timer is set for, soonest the earliest that was announced since the last
	// claim began. Both by the server's clock; zero means none.
	known, soonest time.Time
}

// NewBell returns a silent bell.
func NewBell() *Bell { return &Bell{rung: make(chan Cause, 1)} }

// C gives the wake-ups.
func (b *Bell) C() <-chan Cause { return b.rung }

// Ring wakes the relay. It never blocks.
func (b *Bell) Ring(cause Cause) {
	select {
	case b.rung <- cause:
	default:
	}
}

// announced reads a notification's payload: empty, or the time in ms since 1970 at which an inserted row falls due.
// Anybody in the database may notify, so anything else is a plain wake-up.
func (b *Bell) announced(payload string) {
	ms, err := strconv.ParseInt(strings.TrimSpace(payload), 10, 64)
	if err != nil {
		b.Ring(Notified)
		return
	}
	b.Announce(time.UnixMilli(ms))
}

// Announce tells the bell of a row that falls due at a time by the server's clock. It wakes the relay when that is sooner
// than what the relay waits for.
func (b *Bell) Announce(due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.soonest.IsZero() || due.Before(b.soonest) {
		b.soonest = due
	}
	b.ringIfSoonerLocked()
}

// Looking tells the bell that a claim begins: it will see every row that was announced until now.
func (b *Bell) Looking() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.soonest = time.Time{}
}

// SetNext tells the bell for which due time the relay now waits, zero for none. An announcement that came while the claim
// was under way may be of a row that it did not see.
func (b *Bell) SetNext(due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = due
	b.ringIfSoonerLocked()
}

func (b *Bell) ringIfSoonerLocked() {
	if !b.soonest.IsZero() && (b.known.IsZero() || b.soonest.Before(b.known)) {
		b.Ring(Schedule)
	}
}
