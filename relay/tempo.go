package relay

import (
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
)

const (
	// busyRows rows in busyClaims claims within busyWithin make a relay watch: 500 a second in several transactions, about
	// half of the commits that can notify on a disk that needs 1 ms.
	busyRows, busyClaims = 25, 8
	busyWithin           = 50 * time.Millisecond
	// fullFor: so does being unable to carry more for this long.
	fullFor = 50 * time.Millisecond
	// linger is how long a relay that watches must find nothing before it lets the writers ring again.
	linger = 20 * time.Millisecond
	// A relay that watches spends about a fifth of its time in claims, within these bounds.
	shortestPause, longestPause = time.Millisecond, 10 * time.Millisecond
	lingerPause                 = 2 * time.Millisecond
	// deafPause: without notifications the watch cannot end.
	deafPause = 20 * time.Millisecond
	// crossingPause: a long transaction of the business may hold up the crossing for as long as it lasts.
	crossingPause = 5 * time.Millisecond
)

// tempo measures how busy a relay is.
type tempo struct {
	found [busyClaims]struct { // the last claims that found something, a ring
		at   time.Time
		rows int
	}
	oldest    int
	fullSince time.Time // since when there is more than can be carried; zero: there is not
}

// claimed notes a claim of n rows that may have left some.
func (t *tempo) claimed(now time.Time, n int, more bool) {
	if n > 0 {
		t.found[t.oldest].at, t.found[t.oldest].rows = now, n
		t.oldest = (t.oldest + 1) % busyClaims
	}
	if !more {
		t.fullSince = time.Time{}
	}
}

// full notes that there may be more than can be carried.
func (t *tempo) full(now time.Time) {
	if t.fullSince.IsZero() {
		t.fullSince = now
	}
}

func (t *tempo) busy(now time.Time) bool {
	if !t.fullSince.IsZero() && now.Sub(t.fullSince) > fullFor {
		return true
	}
	rows := 0
	for _, f := range t.found {
		if now.Sub(f.at) > busyWithin {
			return false
		}
		rows += f.rows
	}
	return rows >= busyRows
}

func (t *tempo) quiet(now time.Time) bool { return now.Sub(t.lastFound()) > linger }

func (t *tempo) lastFound() time.Time { return t.found[(t.oldest+busyClaims-1)%busyClaims].at }

// pause is the time between two claims while writers may be silent.
func (t *tempo) pause(s notify.WatchState, claim time.Duration, listening bool) time.Duration {
	switch {
	case !listening && t.quiet(time.Now()):
		return deafPause
	case s != notify.Watching:
		return crossingPause
	case time.Since(t.lastFound()) > lingerPause:
		return lingerPause
	}
	return min(max(4*claim, shortestPause), longestPause)
}
