package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// bar is something that the project promises: a value of this run and its bound.
type bar struct {
	name, what string
	target     float64
	atLeast    bool // otherwise: at most
	value      func(*bench) (float64, bool)
}

// bars in the order in which they are printed. Ratios are of figures from one run; where a suite has rounds, a ratio is the
// median of the rounds' ratios.
var bars = []bar{
	{"idle-p50", "p50 at 10/s, ours / raw floor", 1.15, false, latencyRatio("10/s", "p50")},
	{"idle-p99", "p99 at 10/s, ours / raw floor", 1.5, false, latencyRatio("10/s", "p99")},
	{"idle-vs-river", "p50 at 10/s, River at its best / ours", 1.6, true, idleVersusRiver},
	{"steady-p99", "p99 at 200/s, ours / raw floor", 1.5, false, latencyRatio("200/s", "p99")},
	{"late-p99", "p99 of the lateness of scheduled messages, ms", 5, false, value("lateness", "plain", "ours", "", "p99")},
	{"drain-vs-river", "msg/s, ours tuned / River tuned", 2, true, ratio("throughput", "plain", "ours, tuned", "River, tuned", "no-op", "rate")},
	{"drain-vs-floor", "msg/s, ours tuned / two statements alone", 1, true, ratio("throughput", "plain", "ours, tuned", "two statements alone", "no-op", "rate")},
	{"drain-default", "msg/s, ours by default / River by default", 8, true, ratio("throughput", "plain", "ours", "River, default", "no-op", "rate")},
	{"writers-plain", "commits/s of 32 writers, plain disk, ours / no trigger", 0.95, true, ratio("writers", "plain", "ours", writersPolled.name, "32 writers", "commits")},
	{"writers-slow", "commits/s of 32 writers, slow disk, ours / no trigger", 0.95, true, ratio("writers", "slow", "ours", writersPolled.name, "32 writers", "commits")},
	{"writers-vs-notify", "commits/s of 32 writers, slow disk, ours / NOTIFY trigger", 8, true, ratio("writers", "slow", "ours", writersNotified.name, "32 writers", "commits")},
	{"history", "claim with 10 M finished and 1 M due / on an empty table", 1.5, false, history},
	{"snapshot", "msg/s after 1 M messages under an open snapshot / before", 0.8, true, underSnapshot},
	{"relays", "msg/s of 8 relays / 1 relay, no row sent twice", 0.9, true, eightRelays},
	{"empty-claims", "claims per insert, 30 idle relays", 3, false, value("idle relays", "plain", "ours", "", "claims")},
	{"memory", "resident set while draining 50,000, MB", 40, false, value("memory", "plain", "ours, tuned", "", "resident")},
	{"senders-email", "emails/s by Resend's sender, 64 at once", 5000, true, value("senders", "plain", resendContender.name, "", "rate")},
	{"senders-webhook", "signed webhooks/s, 64 at once", 5000, true, value("senders", "plain", webhookContender.name, "", "rate")},
	{"senders-smtp", "emails/s by SMTP over a pool of 5", 1000, true, value("senders", "plain", smtpContender.name, "", "rate")},
	{"senders-hang", "emails/s beside a channel that hangs / without it", 0.95, true, ratio("senders", "plain", hangContender.name, resendContender.name, "", "rate")},
}

// measureBars runs what the bars need and no more, of the named suites only if there are names.
func (b *bench) measureBars(ctx context.Context, names []string) error {
	parts := []struct {
		name string
		run  func(context.Context, *bench) error
	}{
		{"latency", barLatency},
		{"lateness", func(ctx context.Context, b *bench) error { return b.measureLateness(ctx, 20*time.Second, oursDefault) }},
		{"throughput", func(ctx context.Context, b *bench) error {
			return b.measureThroughput(ctx, noWork, 5, 50_000, statementsAlone, oursTuned, oursDefault, riverTuned, riverDefault)
		}},
		{"writers", barWriters},
		{"relays", func(ctx context.Context, b *bench) error {
			if err := b.measureRelays(ctx, 3, 50_000, 1, 8); err != nil {
				return err
			}
			return b.measureEmptyClaims(ctx, 15)
		}},
		{"memory", func(ctx context.Context, b *bench) error { return b.measureMemory(ctx, 1, 50_000) }},
		{"senders", func(ctx context.Context, b *bench) error { return b.measureSenders(ctx, 5, 30_000) }},
		{"growth", barGrowth},
	}
	var failed error
	for _, part := range parts {
		if names != nil && !slices.Contains(names, part.name) {
			continue
		}
		failed = errors.Join(failed, b.suite(ctx, part.name, part.run))
	}
	b.printBars(b.out)
	return failed
}

func barLatency(ctx context.Context, b *bench) error {
	idle := latencyRate{perSecond: 10, burst: 1, turns: 150, blocks: 4, writers: 1}
	if err := b.measureLatency(ctx, idle, []contender{floor, oursDefault, riverTuned}, []contender{riverFastest}); err != nil {
		return err
	}
	steady := latencyRate{perSecond: 200, burst: 100, turns: 5, blocks: 4, writers: 4}
	return b.measureLatency(ctx, steady, []contender{floor, oursDefault})
}

func barWriters(ctx context.Context, b *bench) error {
	for _, disk := range []func(context.Context) (*server, error){b.plainDisk, b.slowDisk} {
		s, err := disk(ctx)
		if err != nil {
			return err
		}
		run := writersRun{suite: "writers", rounds: 5, slice: 3 * time.Second, relay: true, write: oneStatement}
		if err := b.measureWriters(ctx, s, run, []int{32}, drainingContenders...); err != nil {
			return err
		}
	}
	return nil
}

func barGrowth(ctx context.Context, b *bench) error {
	if err := b.measureGrowth(ctx, growth{finished: []int{10_000_000}, pending: []int{1_000_000}}); err != nil {
		return err
	}
	return b.measureSnapshot(ctx, 20, 50_000)
}

func (b *bench) printBars(w io.Writer) {
	fmt.Fprintln(w)
	for _, bar := range bars {
		fmt.Fprintln(w, bar.line(b))
	}
}

// line is the bar's verdict. A bar for which nothing was measured, because its suite failed, is short.
func (bar bar) line(b *bench) string {
	v, ok := bar.value(b)
	verdict := "short"
	if ok {
		verdict = bar.verdict(v)
	}
	return strings.Join([]string{"bar", bar.name, number(v, ok), bar.bound(), verdict}, " ")
}

func (bar bar) bound() string {
	sign := "<="
	if bar.atLeast {
		sign = ">="
	}
	return fmt.Sprintf("%s%g", sign, bar.target)
}

func (bar bar) verdict(v float64) string {
	if bar.atLeast && v >= bar.target || !bar.atLeast && v <= bar.target {
		return "ok"
	}
	return "short"
}

func value(suite, disk, contender, load, metric string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		f, ok := b.find(suite, disk, contender, load, metric)
		return f.value, ok
	}
}

// ratio compares two contenders round by round: what was measured at the same time is compared.
func ratio(suite, disk, contender, other, load, metric string) func(*bench) (float64, bool) {
	return func(b *bench) (float64, bool) {
		f, ok := b.find(suite, disk, contender, load, metric)
		g, also := b.find(suite, disk, other, load, metric)
		if !ok || !also {
			return 0, false
		}
		return f.over(g), true
	}
}

// over is the median of the rounds' ratios, or the ratio of the values.
func (f figure) over(g figure) float64 {
	if len(f.rounds) == 0 || len(f.rounds) != len(g.rounds) {
		return f.value / g.value
	}
	ratios := make([]float64, len(f.rounds))
	for i := range f.rounds {
		ratios[i] = f.rounds[i] / g.rounds[i]
	}
	return median(ratios)
}

func latencyRatio(load, metric string) func(*bench) (float64, bool) {
	return ratio("latency", "plain", "ours", floor.name, load, metric)
}

func idleVersusRiver(b *bench) (float64, bool) {
	ours, ok := b.find("latency", "plain", "ours", "10/s", "p50")
	tuned, okTuned := b.find("latency", "plain", riverTuned.name, "10/s", "p50")
	fastest, okFastest := b.find("latency", "plain", riverFastest.name, "10/s", "p50")
	return min(tuned.value, fastest.value) / ours.value, ok && okTuned && okFastest
}

func history(b *bench) (float64, bool) {
	const state = "10 M finished, 1 M due"
	full, ok := b.find("growth", "plain", "ours", state, "claim")
	empty, also := b.find("growth", "plain", "ours", state, "claim on an empty table")
	return full.value / empty.value, ok && also
}

// underSnapshot compares the last two chunks with those before the snapshot was opened, the first of which warms up.
func underSnapshot(b *bench) (float64, bool) {
	lines := b.lines(func(f figure) bool { return f.suite == "snapshot" && f.contender == oursTuned.name })
	if len(lines) == 0 || (len(lines[0].values)-chunksBefore)*b.chunk < 1_000_000 {
		return 0, false
	}
	rates := lines[0].values
	return median(rates[len(rates)-2:]) / median(rates[1:chunksBefore]), true
}

// eightRelays is zero when a row was sent twice.
func eightRelays(b *bench) (float64, bool) {
	twice, ok := b.find("relays", "plain", oursTuned.name, relaysLoad(8), "sent twice")
	one, okOne := b.find("relays", "plain", oursTuned.name, relaysLoad(1), "rate")
	eight, okEight := b.find("relays", "plain", oursTuned.name, relaysLoad(8), "rate")
	if twice.value > 0 {
		return 0, true
	}
	return eight.over(one), ok && okOne && okEight
}
