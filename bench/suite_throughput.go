package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mafesoftware/outbox-relay/relay"
)

// throughputSuite measures how fast a backlog is sent, until every message is recorded: by senders that do nothing, and by
// senders that take as long as a fast HTTP call.
func throughputSuite(ctx context.Context, b *bench) error {
	err := b.measureThroughput(ctx, noWork, scale(b, 3, 1), scale(b, 50_000, 20_000),
		statementsAlone, oursTuned, oursDefault, riverTuned, riverDefault, watermillQueue, watermillQueueTuned, watermillLogTuned)
	if err != nil || b.opts.quick {
		return err
	}
	return b.measureThroughput(ctx, fiveMilliseconds, 1, 20_000, oursTuned, oursDefault, riverTuned, riverDefault, watermillQueueTuned)
}

// oursTuned is what a service that must clear a backlog would set.
var oursTuned = ours("ours, tuned", "relay.Options{Concurrency: 100, Batch: 500}", ownTrigger, relay.Options{Concurrency: 100, Batch: 500})

// work is what a handler does with a message.
type work struct {
	name  string
	takes time.Duration
	// small has the contenders that get a part of the backlog, and which: they take as long for each message however many
	// there are, and would take minutes for all of it.
	small map[string]int
}

var (
	// River by default fetches 100 jobs every 100 ms.
	noWork = work{name: "no-op", small: map[string]int{riverDefault.name: 10}}
	// watermill handles one message at a time, ours by default five.
	fiveMilliseconds = work{name: "5 ms", takes: 5 * time.Millisecond,
		small: map[string]int{riverDefault.name: 10, oursDefault.name: 10, watermillQueueTuned.name: 40}}
)

func (b *bench) measureThroughput(ctx context.Context, work work, rounds, n int, contenders ...contender) error {
	return b.measureDrain(ctx, "throughput", work, rounds, n, contenders...)
}

func (b *bench) measureDrain(ctx context.Context, suite string, work work, rounds, n int, contenders ...contender) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	entries, drop, err := b.enter(ctx, s, contenders...)
	if err != nil {
		return err
	}
	rates := map[string][]float64{}
	for round := range rounds {
		for _, e := range rotated(entries, round) {
			d, err := drain(ctx, e, n/max(work.small[e.name], 1), 1, work)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			rates[e.name] = append(rates[e.name], d.rate)
		}
	}
	for _, e := range entries {
		b.addRounds(figure{suite: suite, disk: s.disk, contender: e.name, load: work.name, metric: "rate", unit: "msg/s"}, rates[e.name])
	}
	return drop()
}

// drained is how a backlog was sent.
type drained struct {
	rate  float64 // messages a second
	twice int     // messages that were handled more than once
}

// drain fills n messages and lets consumers send them. The clock begins with the first handler, so that nobody's start
// counts, and ends when no message is left that is not recorded as done.
func drain(ctx context.Context, e *entry, n, consumers int, work work) (d drained, err error) {
	if err := e.empty(ctx); err != nil {
		return d, err
	}
	if err := e.fill(ctx, 0, n); err != nil {
		return d, err
	}
	if err := e.db.settle(ctx); err != nil {
		return d, err
	}
	p := newProbe(n)
	var first atomic.Int64
	handle := func(n int, at time.Time) {
		if first.Load() == 0 {
			first.CompareAndSwap(0, int64(at.Sub(p.base)))
		}
		p.handle(n, at)
		if work.takes > 0 {
			time.Sleep(work.takes)
		}
	}
	stops := make([]func() error, 0, consumers)
	for range consumers {
		stop, startErr := e.start(ctx, handle)
		if startErr != nil {
			err = startErr
			break
		}
		stops = append(stops, stop)
	}
	if err == nil {
		err = p.waitFor(ctx, n, 2*time.Minute)
	}
	if err == nil {
		err = awaitRecorded(ctx, e)
	}
	took := time.Since(p.base) - time.Duration(first.Load())
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	if err != nil {
		return d, err
	}
	if d.twice = p.twice(); d.twice > 0 && consumers == 1 {
		return d, fmt.Errorf("%d messages were handled twice", d.twice)
	}
	d.rate = float64(n) / took.Seconds()
	return d, nil
}

// awaitRecorded asks every millisecond, once all messages have been handled.
func awaitRecorded(ctx context.Context, e *entry) error {
	deadline := time.Now().Add(drainLimit)
	for {
		left, err := e.unfinished(ctx)
		if err != nil || !left {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("messages were handled and never recorded")
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
