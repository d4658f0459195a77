// Command bench measures what an outbox costs and how fast it is: against polling, against a NOTIFY for each commit,
// against the bare statements, and against its peers.
//
//	go run .                     everything, under 20 minutes on two cores
//	go run . -quick              the same with fewer messages, under 3 minutes
//	go run . -suite latency,writers
//	go run . -bars               what the project promises, one line each: bar NAME VALUE TARGET ok|short; with -suite
//	                             the bars of these suites
//
// It starts its own Postgres with fsync on, and needs no other. Tables go to the terminal; CSV files, plots and a page
// that shows them go to results/ (of a part of it, or a quick run, to raw/). The bars write no files.
//
// # What makes the comparison fair
//
// Every suite measures all contenders in one run, in turns of a few seconds and several rounds, since a machine is never
// equally fast for minutes. Every contender has a database of its own on the same server, the same pool size, the same
// payload, which its handler decodes, and is warm before it is measured. Every message is counted: one that is missing or
// handled twice fails the run. What "default" and "tuned" mean stands with each contender and in the page.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// suites in the order in which they run.
var suites = []struct {
	name string
	run  func(context.Context, *bench) error
}{
	{"latency", latencySuite},
	{"throughput", throughputSuite},
	{"writers", writersSuite},
	{"lateness", latenessSuite},
	{"relays", relaysSuite},
	{"memory", memorySuite},
	{"senders", sendersSuite},
	{"growth", growthSuite},
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) > 0 && args[0] == childCommand {
		return child(ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var opts options
	only := flags.String("suite", "", "run these suites only, separated by commas: "+strings.Join(suiteNames(), ", "))
	flags.BoolVar(&opts.quick, "quick", false, "fewer messages and rounds")
	flags.BoolVar(&opts.bars, "bars", false, "run what the bars need and print them")
	flags.StringVar(&opts.out, "out", "", "folder for CSV files, plots and the page; empty: results for a whole run, raw for any other")
	flags.StringVar(&opts.dir, "dir", "", "folder for the server's data, on a real disk; empty: the system's folder for temporary files")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	opts.out = cmp.Or(opts.out, map[bool]string{true: "results"}[*only == "" && !opts.quick], "raw")
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
		for _, name := range names {
			if !slices.Contains(suiteNames(), name) {
				return fmt.Errorf("no suite %q: there are %s", name, strings.Join(suiteNames(), ", "))
			}
		}
	}
	b := newBench(opts)
	defer func() { err = errors.Join(err, b.close()) }()
	if opts.bars {
		return b.measureBars(ctx, names)
	}
	var failed error // a suite that fails does not take the others with it
	for _, suite := range suites {
		if names == nil || slices.Contains(names, suite.name) {
			failed = errors.Join(failed, b.suite(ctx, suite.name, suite.run))
		}
	}
	return errors.Join(failed, b.finish(ctx))
}

func suiteNames() []string {
	var names []string
	for _, suite := range suites {
		names = append(names, suite.name)
	}
	return names
}
