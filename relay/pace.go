package relay

import (
	"sync/atomic"
	"time"
)

// average is a moving average of durations, zero before the first. It moves by an eighth. Concurrent writers may lose a
// sample.
type average struct{ ns atomic.Int64 }

func (a *average) add(d time.Duration) {
	old := a.ns.Load()
	if old == 0 {
		a.ns.Store(max(1, int64(d)))
		return
	}
	a.ns.Store(max(1, old+(int64(d)-old)/8))
}

func (a *average) get() time.Duration { return time.Duration(a.ns.Load()) }

// ahead is how many rows to have in hand so that no sender waits for a claim: what concurrency senders finish during two
// claims, at most limit. Slow senders need none: what waits here could be sent by another relay.
func ahead(claim, send time.Duration, concurrency, limit int) int {
	if claim == 0 || send == 0 {
		return 0
	}
	return int(min(int64(limit), 2*int64(concurrency)*int64(claim)/int64(send)))
}
