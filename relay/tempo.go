package relay

import (
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
)

const (
	// A relay watches when inserts are announced faster than busyShare of what can be announced at all: one commit for each
	// flush of the disk, about as long as the write of a result takes. Within these bounds, per second.
	busyShare            = 0.4
	leastBusy, mostBusy  = 40, 400
	lingerFor, lingerTen = 8, 10 // a watch ends when nothing came for 8 times the mean gap at that rate; it looks 10 times meanwhile
	// A relay that watches and finds something spends about a fifth of its time in claims, within these bounds.
	shortestPause, longestPause = time.Millisecond, 10 * time.Millisecond
	// deafPause: without notifications the watch cannot end.
	deafPause = 20 * time.Millisecond
	// A long transaction of the business may hold up the crossing for as long as it lasts: the relay looks less and less
	// often.
	shortestCrossing, longestCrossing = 5 * time.Millisecond, 100 * time.Millisecond
)

// tempo measures how busy a relay is.
type tempo struct {
	claim, write *average  // of the relay
	found        time.Time // the last claim that found something
	crossing     time.Time // when the watch last changed its state
}

// claimed notes a claim of n rows.
func (t *tempo) claimed(now time.Time, n int) {
	if n > 0 {
		t.found = now
	}
}

// busyRate is the rate of announcements, per second, from which a relay watches.
func (t *tempo) busyRate() float64 {
	write := t.write.get()
	if write == 0 {
		return mostBusy
	}
	return min(max(busyShare/write.Seconds(), leastBusy), mostBusy)
}

// busy is about announcements alone: a relay that is full because its senders are slow has no reason to silence anybody.
func (t *tempo) busy(bell *notify.Bell) bool { return bell.Hectic(t.busyRate()) }

// linger is how long a relay that watches must find nothing before it lets the writers ring again.
func (t *tempo) linger() time.Duration {
	return time.Duration(lingerFor / t.busyRate() * float64(time.Second))
}

func (t *tempo) quiet(now time.Time) bool { return now.Sub(t.found) > t.linger() }

// pause is the time between two claims while writers may be silent.
func (t *tempo) pause(s notify.WatchState, listening bool) time.Duration {
	now, lingering := time.Now(), t.linger()/lingerTen
	switch {
	case !listening && t.quiet(now):
		return deafPause
	case s != notify.Watching:
		return min(max(now.Sub(t.crossing)/20, shortestCrossing), longestCrossing)
	case now.Sub(t.found) > lingering:
		return lingering
	}
	return min(max(4*t.claim.get(), shortestPause), longestPause)
}
