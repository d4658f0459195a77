package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// probe follows messages [0, n) from their commit to their handler.
//
// The latency of a message is the time from the moment just before its COMMIT is sent to the moment at which its handler
// begins. Both are read in one process. The commit itself (its flush to the disk) is part of it, for every contender alike.
type probe struct {
	base      time.Time
	committed []atomic.Int64 // ns since base
	handled   []atomic.Int64
	times     []atomic.Int32 // how often it was handled
	count     atomic.Int64   // handled at least once
	// awaited is the count at which arrived gets an element. Zero means nobody waits.
	awaited atomic.Int64
	arrived chan struct{}
}

func newProbe(n int) *probe {
	return &probe{base: time.Now(), committed: make([]atomic.Int64, n), handled: make([]atomic.Int64, n),
		times: make([]atomic.Int32, n), arrived: make(chan struct{}, 1)}
}

func (p *probe) commit(n int) { p.committed[n].Store(int64(time.Since(p.base))) }

func (p *probe) handle(n int, at time.Time) {
	if p.times[n].Add(1) > 1 {
		return
	}
	p.handled[n].Store(int64(at.Sub(p.base)))
	if p.count.Add(1) == p.awaited.Load() {
		ring(p.arrived)
	}
}

// waitFor returns when n messages have been handled, or an error that says how many were. One goroutine may wait.
func (p *probe) waitFor(ctx context.Context, n int, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	p.awaited.Store(int64(n))
	for p.count.Load() < int64(n) {
		select {
		case <-p.arrived: // perhaps of an earlier wait
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%d of %d messages were handled within %v", p.count.Load(), n, limit)
		}
	}
	return nil
}

// exactlyOnce is an error when one of messages [0, n) was handled more than once, or not at all.
func (p *probe) exactlyOnce(n int) error {
	for n := range n {
		if times := p.times[n].Load(); times != 1 {
			return fmt.Errorf("message %d was handled %d times, want once", n, times)
		}
	}
	return nil
}

// latencies of the messages from the first on, in milliseconds.
func (p *probe) latencies(first int) []float64 {
	var all []float64
	for n := first; n < len(p.handled); n++ {
		all = append(all, float64(p.handled[n].Load()-p.committed[n].Load())/1e6)
	}
	return all
}

// twice is the number of messages that were handled more than once.
func (p *probe) twice() int {
	n := 0
	for i := range p.times {
		if p.times[i].Load() > 1 {
			n++
		}
	}
	return n
}
