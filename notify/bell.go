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
	rung    chan Cause
	lent    chan *Loan
	covered chan struct{}

	mu sync.Mutex
	// known is the next due time that the relay's timer is set for, soonest the earliest that was announced since the last
	// claim began. Both by the server's clock; zero means none.
	known, soonest time.Time
	// own is what the last claim saw, if it left nothing.
	own snapshot
	// unseen are the transactions that were announced since the last claim began and that no other relay has seen.
	unseen map[uint64]bool
	// last are the times of the last announcements, a ring whose oldest is at next.
	last [32]time.Time
	next int
}

// NewBell returns a silent bell.
func NewBell() *Bell {
	return &Bell{rung: make(chan Cause, 1), lent: make(chan *Loan), covered: make(chan struct{}, 1), unseen: map[uint64]bool{}}
}

// C gives the wake-ups.
func (b *Bell) C() <-chan Cause { return b.rung }

// Ring wakes the relay. It never blocks. No other relay can have looked for what it is about.
func (b *Bell) Ring(cause Cause) {
	b.mu.Lock()
	b.unseen[nobody] = true
	b.mu.Unlock()
	b.ring(cause)
}

func (b *Bell) ring(cause Cause) {
	select {
	case b.rung <- cause:
	default:
	}
}

// nobody stands in unseen for an announcement without a transaction's id, which no other relay can be known to have seen.
const nobody = 0

// maxUnseen bounds unseen while a relay cannot claim. More than these it looks for itself.
const maxUnseen = 1000

// announced reads a payload of the insert trigger: x and a transaction's id, and before that, perhaps, the time in ms
// since 1970 at which its row falls due. Anybody in the database may notify: anything else is a plain wake-up. It tells
// whether there is something to claim now, for which the caller is to wake the relay.
func (b *Bell) announced(payload string) (now bool) {
	when, id, _ := strings.Cut(payload, "x")
	transaction, _ := strconv.ParseUint(id, 10, 64) // nobody, if it is none
	ms, err := strconv.ParseInt(when, 10, 64)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[b.next] = time.Now()
	b.next = (b.next + 1) % len(b.last)
	if len(b.unseen) >= maxUnseen {
		clear(b.unseen)
		transaction = nobody
	}
	if err != nil && transaction != nobody && b.own.sees(transaction) {
		return false
	}
	b.unseen[transaction] = true
	if err != nil {
		return true
	}
	b.announceLocked(time.UnixMilli(ms))
	return false
}

// Hectic tells whether inserts are announced at this rate, per second, or a higher one.
func (b *Bell) Hectic(rate float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	within := time.Duration(float64(len(b.last)) / rate * float64(time.Second))
	return time.Since(b.last[b.next]) < within
}

// Calm forgets the announcements that Hectic counts: they were the reason for a watch that has just ended.
func (b *Bell) Calm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.last[:])
}

// Announce tells the bell of a row that falls due at a time by the server's clock. It wakes the relay when that is sooner
// than what the relay waits for.
func (b *Bell) Announce(due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unseen[nobody] = true
	b.announceLocked(due)
}

func (b *Bell) announceLocked(due time.Time) {
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
	clear(b.unseen)
}

// forget drops what the last claim saw: the next server may number its transactions anew.
func (b *Bell) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = snapshot{}
}

// Saw tells the bell what a claim saw that left nothing: what such transactions announce later needs no look.
func (b *Bell) Saw(snapshot string) {
	own := parseSnapshot(snapshot)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = own
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
		b.ring(Schedule)
	}
}

// Covered has an element when another relay may have looked for all that this one knows of. Rest tells.
func (b *Bell) Covered() <-chan struct{} { return b.covered }

// Rest tells whether other relays have looked for everything that was announced, and for which due time there is still to
// wait, zero for none.
func (b *Bell) Rest() (all bool, known time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unseen) == 0, b.known
}

// cover hears that another relay's claim, made at now with this snapshot, left nothing.
func (b *Bell) cover(now time.Time, s snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for transaction := range b.unseen {
		if transaction != nobody && s.sees(transaction) {
			delete(b.unseen, transaction)
		}
	}
	if !b.known.After(now) {
		b.known = time.Time{} // its row was due by then, and taken
	}
	if len(b.unseen) == 0 {
		signal(b.covered)
	}
}

// snapshot is what a statement saw: every transaction below end that is not in progress.
type snapshot struct {
	end        uint64
	inProgress []uint64
}

// parseSnapshot reads xmin:xmax:xip,xip,... (PostgreSQL manual, 9.27: pg_snapshot). A text that is none sees nothing.
func parseSnapshot(s string) (parsed snapshot) {
	fields := strings.Split(s, ":")
	if len(fields) != 3 {
		return snapshot{}
	}
	end, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return snapshot{}
	}
	for id := range strings.SplitSeq(fields[2], ",") {
		if id == "" {
			continue
		}
		transaction, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return snapshot{}
		}
		parsed.inProgress = append(parsed.inProgress, transaction)
	}
	parsed.end = end
	return parsed
}

func (s snapshot) sees(transaction uint64) bool {
	for _, id := range s.inProgress {
		if id == transaction {
			return false
		}
	}
	return transaction < s.end
}
