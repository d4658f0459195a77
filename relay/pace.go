package relay

import (
	"sync/atomic"
	"time"
)

// pace knows about how long a claim, a send and a write of results take, and from that how many rows to have in hand so that no sender waits
// for a claim. Slow senders need none: what waits here could be sent by another relay.
type pace struct {
	claim, send, write atomic.Int64 // moving averages in ns; zero before the first
}

func (p *pace) claimed(d time.Duration) { average(&p.claim, d) }
func (p *pace) sent(d time.Duration)    { average(&p.send, d) }
func (p *pace) wrote(d time.Duration)   { average(&p.write, d) }

// average moves by an eighth. Concurrent writers may lose a sample.
func average(a *atomic.Int64, d time.Duration) {
	old := a.Load()
	if old == 0 {
		a.Store(max(1, int64(d)))
		return
	}
	a.Store(max(1, old+(int64(d)-old)/8))
}

// ahead is the number of rows that concurrency senders finish during two claims, at most limit.
func (p *pace) ahead(concurrency, limit int) int {
	claim, send := p.claim.Load(), p.send.Load()
	if claim == 0 || send == 0 {
		return 0
	}
	return int(min(int64(limit), 2*int64(concurrency)*claim/send))
}
