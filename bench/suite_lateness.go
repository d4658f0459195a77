package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// latenessSuite measures how long after its due time a scheduled message reaches its handler. The due times are random
// moments of some seconds, known in advance; all contenders wait for theirs at the same time, 40 messages a second each.
func latenessSuite(ctx context.Context, b *bench) error {
	return b.measureLateness(ctx, scale(b, 20*time.Second, 5*time.Second), oursDefault, oursPolling(time.Second), riverTuned)
}

const (
	scheduledPerSecond = 40
	// scheduleAhead is the time between the commit of the messages and the first due time: more than a poll of a second.
	scheduleAhead = 2 * time.Second
)

func (b *bench) measureLateness(ctx context.Context, span time.Duration, contenders ...contender) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	entries, drop, err := b.enter(ctx, s, contenders...)
	if err != nil {
		return err
	}
	n := int(span.Seconds() * scheduledPerSecond)
	probes, stops := make([]*probe, len(entries)), make([]func() error, len(entries))
	for i, e := range entries {
		probes[i] = newProbe(n)
		if stops[i], err = e.start(ctx, probes[i].handle); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	for i, e := range entries {
		if err := schedule(ctx, e, probes[i], n, span); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	for i, e := range entries {
		if err := probes[i].waitFor(ctx, n, span+drainLimit); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if err := stops[i](); err != nil {
			return err
		}
		if err := probes[i].exactlyOnce(n); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		samples := probes[i].latencies(0)
		slices.Sort(samples)
		if samples[0] < 0 {
			return fmt.Errorf("%s: a message was sent %.1f ms before it was due", e.name, -samples[0])
		}
		b.addLatency("lateness", e.name, fmt.Sprintf("%d/s", scheduledPerSecond), samples)
	}
	return drop()
}

// schedule commits n messages that fall due at random moments of span. What the probe takes for the moment of the commit
// is the due time.
func schedule(ctx context.Context, e *entry, p *probe, n int, span time.Duration) error {
	return pgx.BeginFunc(ctx, e.db.pool, func(tx pgx.Tx) error {
		begin := time.Now().Add(scheduleAhead)
		for i := range n {
			at := begin.Add(rand.N(span)).Truncate(time.Microsecond) // which is what Postgres stores
			p.committed[i].Store(int64(at.Sub(p.base)))
			if err := e.insert(ctx, tx, i, at); err != nil {
				return err
			}
		}
		return nil
	})
}
