package relay

import (
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
)

const (
	// fullLook is the longest time between two claims without a bound, jamLook while a channel can carry no more.
	fullLook, jamLook = 4 * time.Second, 10 * time.Second
	// slowLook is how long two claims without a bound must take for the next ones to have one.
	slowLook = 5 * time.Millisecond
	// Claims without a bound take at most one part in so many of the time: fullShare always, lookShare until jamLook while a
	// channel can carry no more.
	fullShare, lookShare = 10, 100
	// dueMargin is longer than most transactions of a writer: what it inserts is due when it begins, and nobody sees it
	// before it ends. What a longer one inserts may have to wait for the next claim without a bound. A longer margin costs:
	// at 10,000 messages a second an old snapshot leaves 600,000 dead entries in a minute.
	dueMargin = 200 * time.Millisecond
)

// bounds remembers for each lane below which due time nothing of it was left, so that a claim can begin there. What lies
// below costs every claim that passes over it: the messages of a channel that can carry no more, which may have waited for
// hours while its provider hung, what is paused, and the dead entries that an old snapshot keeps in the index.
//
// It is a hint: a message may turn up below all the same. So every now and then, and whenever a claim with a bound comes
// back empty, one goes without.
type bounds map[string]*bound

type bound struct {
	from   time.Time // by the database's clock
	looked time.Time // when a claim without a bound looked at this lane
	// took is that claim, before the one before it: one alone that was slow may have waited for a processor.
	took, before time.Duration
}

// from gives the bound of a claim for these lanes, zero for none. In a jam a lane can carry no more.
func (bs bounds) from(lanes []string, jam bool, now time.Time) time.Time {
	var from time.Time
	for i, name := range lanes {
		b, known := bs[name]
		if !known || b.from.IsZero() || now.Sub(b.looked) >= b.rest(jam) {
			return time.Time{}
		}
		if i == 0 || b.from.Before(from) {
			from = b.from
		}
	}
	return from
}

// rest is how long claims may have a bound.
func (b *bound) rest(jam bool) time.Duration {
	switch {
	case jam:
		return max(min(jamLook, lookShare*b.took), fullShare*b.took)
	case min(b.took, b.before) > slowLook:
		return max(fullLook, fullShare*b.took)
	}
	return 0
}

// took notes what a claim for these lanes brought. passed: it left only what is paused of all that was due.
func (bs bounds) took(lanes []string, bounded, passed bool, b *claim.Batch, now time.Time) {
	from := b.Now.Add(-dueMargin)
	if len(b.Rows) > 0 && b.Due.Before(from) && !passed {
		from = b.Due
	}
	for _, name := range lanes {
		if bs[name] == nil {
			bs[name] = new(bound)
		}
		one := bs[name]
		if passed || len(b.Rows) > 0 || !bounded && len(b.Closed) == 0 {
			one.from = from
		}
		if !bounded {
			one.looked, one.took, one.before = now, now.Sub(b.TakenAt), one.took
		}
	}
}

// lookAgain has the next claim for one of these lanes go without a bound.
func (bs bounds) lookAgain(lanes []string) {
	for _, name := range lanes {
		if b := bs[name]; b != nil {
			b.looked = time.Time{}
		}
	}
}

// until gives the time of the next claim for these lanes that goes without a bound.
func (bs bounds) until(lanes []string, jam bool) (at time.Time) {
	for i, name := range lanes {
		b := bs[name]
		if next := b.looked.Add(b.rest(jam)); i == 0 || next.Before(at) {
			at = next
		}
	}
	return at
}
