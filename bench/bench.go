package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

type options struct {
	quick, bars bool
	out, dir    string
}

// bench is one run: its servers and what was measured so far.
type bench struct {
	opts    options
	out     io.Writer // the tables
	begun   time.Time
	plain   *server // started when first needed
	slow    *server
	figures []figure
	curves  []curve
	printed map[string]bool // suites whose tables are on the terminal
	images  []image
	entered []contender
	chunk   int // messages in a chunk of the snapshot suite
}

func newBench(opts options) *bench {
	return &bench{opts: opts, out: os.Stdout, begun: time.Now(), printed: map[string]bool{}}
}

// figure is one measured number.
type figure struct {
	suite     string
	disk      string // plain or slow
	contender string
	load      string // what it was measured under: "10/s", "32 writers", "10M finished"
	metric    string
	unit      string
	value     float64
	// rounds are the values of the single rounds, of which value is the median. Nil when there was one.
	rounds []float64
}

// curve is a distribution of latencies in milliseconds, sorted.
type curve struct {
	suite, contender, load string
	samples                []float64
}

func (b *bench) add(f figure) { b.figures = append(b.figures, f) }

// addRounds keeps the median of the rounds.
func (b *bench) addRounds(f figure, rounds []float64) {
	f.value, f.rounds = median(rounds), rounds
	b.add(f)
}

// addLatency keeps a distribution of milliseconds, sorted, and its percentiles.
func (b *bench) addLatency(suite, contender, load string, samples []float64) {
	b.curves = append(b.curves, curve{suite: suite, contender: contender, load: load, samples: samples})
	for _, p := range []float64{50, 90, 99} {
		b.add(figure{suite: suite, disk: "plain", contender: contender, load: load,
			metric: fmt.Sprintf("p%g", p), value: percentile(samples, p), unit: "ms"})
	}
}

// find gives the figure that was measured for all that is given; empty strings stand for any.
func (b *bench) find(suite, disk, contender, load, metric string) (figure, bool) {
	is := func(want, got string) bool { return want == "" || want == got }
	for _, f := range b.figures {
		if is(suite, f.suite) && is(disk, f.disk) && is(contender, f.contender) && is(load, f.load) && is(metric, f.metric) {
			return f, true
		}
	}
	return figure{}, false
}

// scale gives the size of a part of a suite: full, or quick.
func scale[T any](b *bench, full, quick T) T {
	if b.opts.quick {
		return quick
	}
	return full
}

func (b *bench) suite(ctx context.Context, name string, run func(context.Context, *bench) error) error {
	begun := time.Now()
	fmt.Fprintf(os.Stderr, "%s ...\n", name)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := run(ctx, b); err != nil {
		fmt.Fprintf(os.Stderr, "%s failed: %v\n", name, err)
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(os.Stderr, "%s took %v\n", name, time.Since(begun).Round(time.Second))
	b.printTables()
	return nil
}

// finish writes what the run has found.
func (b *bench) finish(ctx context.Context) error {
	if len(b.figures) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.opts.out, 0o755); err != nil {
		return err
	}
	if err := b.writeCSV(); err != nil {
		return err
	}
	if err := b.plots(); err != nil {
		return err
	}
	return b.writePage(ctx)
}

func (b *bench) close() error { return errors.Join(b.plain.stop(), b.slow.stop()) }
