package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/relay"
)

// latencySuite measures the time from commit to handler (see probe) at three rates.
func latencySuite(ctx context.Context, b *bench) error {
	for _, rate := range []latencyRate{
		{perSecond: 10, burst: 1, turns: scale(b, 100, 50), blocks: scale(b, 4, 1), writers: 1},
		{perSecond: 200, burst: 100, turns: 2, blocks: scale(b, 4, 1), writers: 4},
		{perSecond: 2000, burst: 1000, turns: 1, blocks: scale(b, 4, 1), writers: 16},
	} {
		if err := b.measureLatency(ctx, rate, quietContenders, loudContenders); err != nil {
			return fmt.Errorf("%v: %w", rate, err)
		}
	}
	return nil
}

// The quiet ones hardly ask the database while nothing happens, so they may all be awake while one of them is measured.
// The loud one is awake alone.
var (
	quietContenders = []contender{
		floor,
		oursDefault,
		oursNoWatch,
		riverTuned,
		riverDefault,
		oursPolling(100 * time.Millisecond),
		oursPolling(time.Second),
	}
	loudContenders = []contender{riverFastest}
)

// oursDefault is the relay with the zero value of its options.
var oursDefault = ours("ours", "relay.Options{}: concurrency 5, batch 20", ownTrigger, relay.Options{})

// oursNoWatch never silences the writers: each commit rings.
var oursNoWatch = ours("ours, no watch lock", "relay.Options{NoWatch: true}", ownTrigger, relay.Options{NoWatch: true})

// oursPolling is our relay with nothing to wake it but its poll, which comes up to a fifth earlier at random.
func oursPolling(interval time.Duration) contender {
	return ours(fmt.Sprintf("poll %v", interval), "our relay without the trigger, defaults but for the poll interval", noTrigger,
		relay.Options{PollInterval: interval, NoWatch: true})
}

// latencyRate is a load: messages that come at random moments, perSecond of them on average.
//
// The contenders of a group take turns: a burst for one, then for the next. At 10/s a burst is a single message and the
// turns are spread over the tenth of a second, so that each contender, for itself, is idle at 10/s. The groups take
// turns too, a block of turns for each.
type latencyRate struct {
	perSecond, burst, turns, blocks, writers int
}

func (r latencyRate) String() string { return fmt.Sprintf("%d/s", r.perSecond) }

// warmUp is how many messages each contender handles before it is measured.
const warmUp = 50

// drainLimit is how long a contender may take to handle what it has been given.
const drainLimit = 30 * time.Second

func (b *bench) measureLatency(ctx context.Context, rate latencyRate, groups ...[]contender) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	entered := make([][]*entry, len(groups))
	for i, group := range groups {
		entries, drop, err := b.enter(ctx, s, group...)
		if err != nil {
			return err
		}
		defer drop()
		entered[i] = entries
	}
	samples := map[string][]float64{}
	for range rate.blocks {
		for _, entries := range entered {
			if err := latencyBlock(ctx, entries, rate, samples); err != nil {
				return err
			}
		}
	}
	for _, e := range slices.Concat(entered...) {
		slices.Sort(samples[e.name])
		b.addLatency("latency", e.name, rate.String(), samples[e.name])
	}
	return nil
}

// latencyBlock starts the contenders of a group, lets them take their turns and stops them. It adds to samples.
func latencyBlock(ctx context.Context, entries []*entry, rate latencyRate, samples map[string][]float64) (err error) {
	var runs []*latencyRun
	defer func() {
		for _, run := range runs {
			err = errors.Join(err, run.stop())
			run.writers.close(ctx)
		}
	}()
	for _, e := range entries {
		run, err := startLatencyRun(ctx, e, rate)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		runs = append(runs, run)
	}
	for turn := range rate.turns {
		for _, run := range rotated(runs, turn) {
			if err := run.burst(ctx, len(runs)); err != nil {
				return fmt.Errorf("%s: %w", run.name, err)
			}
		}
	}
	for _, run := range runs {
		got, err := run.samples(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", run.name, err)
		}
		samples[run.name] = append(samples[run.name], got...)
	}
	return nil
}

// latencyRun is a contender whose consumer runs.
type latencyRun struct {
	*entry
	rate    latencyRate
	probe   *probe
	writers *writers
	next    int // message
	stop    func() error
}

func startLatencyRun(ctx context.Context, e *entry, rate latencyRate) (*latencyRun, error) {
	if err := e.empty(ctx); err != nil {
		return nil, err
	}
	if err := e.db.settle(ctx); err != nil {
		return nil, err
	}
	w, err := newWriters(ctx, e, rate.writers)
	if err != nil {
		return nil, err
	}
	run := &latencyRun{entry: e, rate: rate, probe: newProbe(warmUp + rate.turns*rate.burst), writers: w}
	if run.stop, err = e.start(ctx, run.probe.handle); err != nil {
		w.close(ctx)
		return nil, err
	}
	for ; run.next < warmUp && err == nil; run.next++ {
		err = w.write(ctx, run.next%rate.writers, run.probe, run.next)
	}
	if err == nil {
		err = run.probe.waitFor(ctx, warmUp, drainLimit)
	}
	if err != nil {
		w.close(ctx)
		return nil, errors.Join(err, run.stop())
	}
	return run, nil
}

// burst writes the messages of one turn, one of turns in a round.
func (r *latencyRun) burst(ctx context.Context, turns int) error {
	from := r.next
	r.next += r.rate.burst
	if r.rate.burst == 1 {
		if err := pause(ctx, around(time.Second/time.Duration(r.rate.perSecond*turns))); err != nil {
			return err
		}
		return r.writers.write(ctx, 0, r.probe, from)
	}
	if err := r.writers.poisson(ctx, r.probe, from, r.next, r.rate.perSecond); err != nil {
		return err
	}
	return r.probe.waitFor(ctx, r.next, drainLimit)
}

// samples gives the latencies of all messages but those of the warm-up.
func (r *latencyRun) samples(ctx context.Context) ([]float64, error) {
	if err := r.probe.waitFor(ctx, r.next, drainLimit); err != nil {
		return nil, err
	}
	return r.probe.latencies(warmUp), r.probe.exactlyOnce(r.next)
}
