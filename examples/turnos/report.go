package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/relay"
)

// result is what one run came to.
type result struct {
	bookings, duplicates     int
	enqueued, sendable, sent int // messages
	repeated                 int // messages that were delivered again after an attempt that was not answered
	twice                    int // messages that were delivered again for no such reason: never
	retries, discarded       map[string]int
	// From a time to the first attempt, sorted: the answer to COMMIT, its sending, the reminder's time.
	afterCommit, sinceCommit, late []time.Duration
}

// result may be called once the run has ended.
func (j *journal) result(s *stub) result {
	r := result{
		duplicates: j.duplicates, enqueued: j.enqueued, sendable: j.sendable,
		retries: map[string]int{}, discarded: map[string]int{},
	}
	r.bookings = len(j.commits) + j.duplicates
	for _, e := range j.entries {
		for _, result := range e.results {
			switch result.Outcome {
			case relay.Sent:
				r.sent++
			case relay.Retried:
				r.retries[reason(result)]++
			case relay.Discarded, relay.Failed:
				r.discarded[reason(result)]++
			}
		}
		if e.commit != nil {
			r.afterCommit = append(r.afterCommit, e.commit.after(e.begun))
			r.sinceCommit = append(r.sinceCommit, e.commit.before(e.begun))
		} else {
			r.late = append(r.late, e.late())
		}
		switch again := s.deliveries(e.IdempotencyKey) - 1; {
		case again > e.unanswered:
			r.twice++
		case again > 0:
			r.repeated++
		}
	}
	slices.Sort(r.afterCommit)
	slices.Sort(r.sinceCommit)
	slices.Sort(r.late)
	return r
}

// report prints the table and the last line. The error says what should not have happened.
func report(out io.Writer, woken, polled result) error {
	row := func(label string, value func(result) any) {
		fmt.Fprintf(out, "%-44s %12v %12v\n", label, value(woken), value(polled))
	}
	counts := func(label string, of func(result) map[string]int) {
		row(label, func(r result) any { return sum(of(r)) })
		both := map[string]int{}
		maps.Copy(both, of(woken))
		maps.Copy(both, of(polled))
		for _, name := range slices.Sorted(maps.Keys(both)) {
			row("  "+name, func(r result) any { return of(r)[name] })
		}
	}
	times := func(label string, of func(result) []time.Duration) {
		row(label+" p50", func(r result) any { return show(percentile(of(r), 50)) })
		row(label+" p99", func(r result) any { return show(percentile(of(r), 99)) })
	}
	fmt.Fprintf(out, "\n%-44s %12s %12s\n", "", "relay.Run", "1 s poll")
	row("bookings", func(r result) any { return r.bookings })
	row("  duplicates, which enqueued nothing", func(r result) any { return r.duplicates })
	row("messages", func(r result) any { return r.enqueued })
	row("sent", func(r result) any { return r.sent })
	row("  delivered twice, an attempt unanswered (1)", func(r result) any { return r.repeated })
	row("  delivered twice, each attempt answered", func(r result) any { return r.twice })
	counts("retried", func(r result) map[string]int { return r.retries })
	counts("discarded", func(r result) map[string]int { return r.discarded })
	times("commit to send (2)", func(r result) []time.Duration { return r.afterCommit })
	times("  with the commit itself (3)", func(r result) []time.Duration { return r.sinceCommit })
	times("scheduled late (4)", func(r result) []time.Duration { return r.late })
	fmt.Fprint(out, notes)
	fmt.Fprintf(out, "demo: sent %d of %d, commit to send p50 %.2f ms p99 %.2f ms, scheduled late p50 %.2f ms p99 %.2f ms\n",
		woken.sent, woken.sendable,
		milliseconds(percentile(woken.afterCommit, 50)), milliseconds(percentile(woken.afterCommit, 99)),
		milliseconds(percentile(woken.late, 50)), milliseconds(percentile(woken.late, 99)))
	return errors.Join(woken.check("relay.Run"), polled.check("1 s poll"))
}

const notes = `
(1) At least once: WhatsApp's providers know no idempotency key, so a message may arrive again when an answer is lost.
(2) From the answer to COMMIT to the first call of the sender; zero where the call came first.
(3) From the moment before COMMIT is sent, so with its flush to disk.
(4) From the time for which a reminder was scheduled to the first call of the sender.

`

// check returns an error when something is missing or was sent too often.
func (r result) check(run string) error {
	switch {
	case r.sent != r.sendable:
		return fmt.Errorf("%s: %d messages could be sent, %d were", run, r.sendable, r.sent)
	case r.sent+sum(r.discarded) != r.enqueued:
		return fmt.Errorf("%s: %d messages were enqueued, %d ended", run, r.enqueued, r.sent+sum(r.discarded))
	case r.twice > 0:
		return fmt.Errorf("%s: %d messages were delivered twice although each attempt was answered", run, r.twice)
	}
	return nil
}

func sum(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// percentile gives the smallest of the sorted values that p percent do not exceed, zero of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(p/100*float64(len(sorted))))-1]
}

func show(d time.Duration) string { return fmt.Sprintf("%.2f ms", milliseconds(d)) }
