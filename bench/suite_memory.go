package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mafesoftware/outbox-relay/relay"
)

// memorySuite measures a relay that is a process of its own: its largest resident set while it drains a backlog, and the
// processor time that it takes for it.
func memorySuite(ctx context.Context, b *bench) error {
	return b.measureMemory(ctx, scale(b, 3, 1), scale(b, 50_000, 20_000))
}

// childCommand, as the first argument, makes this program a relay and nothing else.
const childCommand = "relay-child"

// childReport is what the child prints when it has drained.
type childReport struct {
	ResidentMB, UserSeconds, SystemSeconds float64
}

func (b *bench) measureMemory(ctx context.Context, rounds, n int) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	entries, drop, err := b.enter(ctx, s, oursTuned, oursDefault)
	if err != nil {
		return err
	}
	resident, cpu := map[string][]float64{}, map[string][]float64{}
	for round := range rounds {
		for _, e := range rotated(entries, round) {
			report, err := drainInChild(ctx, e, n)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			resident[e.name] = append(resident[e.name], report.ResidentMB)
			cpu[e.name] = append(cpu[e.name], (report.UserSeconds+report.SystemSeconds)/float64(n)*1e6)
		}
	}
	for _, e := range entries {
		f := figure{suite: "memory", disk: s.disk, contender: e.name, load: millions(n) + " messages"}
		f.metric, f.unit = "resident", "MB"
		b.addRounds(f, resident[e.name])
		f.metric, f.unit = "cpu", "us/msg"
		b.addRounds(f, cpu[e.name])
	}
	return drop()
}

func drainInChild(ctx context.Context, e *entry, n int) (report childReport, err error) {
	if err := e.empty(ctx); err != nil {
		return report, err
	}
	if err := e.fill(ctx, 0, n); err != nil {
		return report, err
	}
	if err := e.db.settle(ctx); err != nil {
		return report, err
	}
	self, err := os.Executable()
	if err != nil {
		return report, err
	}
	opts := e.system.(*outboxSystem).options
	cmd := exec.CommandContext(ctx, self, childCommand, e.db.dsn, strconv.Itoa(n), strconv.Itoa(opts.Concurrency), strconv.Itoa(opts.Batch))
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return report, fmt.Errorf("the relay's process: %w", err)
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return report, err
	}
	left, err := e.unfinished(ctx)
	if err == nil && left {
		err = fmt.Errorf("the relay's process ended before all was recorded")
	}
	return report, err
}

// child is the relay's process: it drains n messages and reports on itself.
func child(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%s wants a DSN, the number of messages, concurrency and batch", childCommand)
	}
	var numbers [3]int
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.Atoi(args[i+1]); err != nil {
			return err
		}
	}
	s := &outboxSystem{db: &database{dsn: args[0]}, options: relay.Options{Concurrency: numbers[1], Batch: numbers[2]}, senders: handing}
	p := newProbe(numbers[0])
	stop, err := s.start(ctx, p.handle)
	if err != nil {
		return err
	}
	if err := p.waitFor(ctx, numbers[0], 2*time.Minute); err != nil {
		return err
	}
	if err := stop(); err != nil { // when it returns, all is recorded
		return err
	}
	report, err := ownReport()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func ownReport() (childReport, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return childReport{}, err
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	resident, err := residentMB()
	return childReport{ResidentMB: resident, UserSeconds: seconds(usage.Utime), SystemSeconds: seconds(usage.Stime)}, err
}

// residentMB is the largest resident set of this process so far. (Getrusage has a larger one: that of the parent at the fork.)
func residentMB() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return float64(kb) / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
