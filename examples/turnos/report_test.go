package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/transporte"
)

func complete() result {
	return result{
		bookings: 3, duplicates: 1, enqueued: 4, sendable: 3, sent: 3, discarded: map[string]int{"plantilla (132001)": 1},
		afterCommit: []time.Duration{1e6}, sinceCommit: []time.Duration{2e6}, late: []time.Duration{3e6},
	}
}

func TestReportFailsWhenAMessageIsMissingOrSentTwice(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(*result)
		want  string // empty: no error
	}{
		{"complete", func(*result) {}, ""},
		{"repeated after no answer", func(r *result) { r.repeated = 2 }, ""},
		{"never ended", func(r *result) { r.sent = 2 }, "3 messages could be sent, 2 were"},
		{"failed", func(r *result) { r.sent, r.discarded["red (500)"] = 2, 1 }, "3 messages could be sent, 2 were"},
		{"sent by mistake", func(r *result) { r.sent, r.discarded = 4, nil }, "3 messages could be sent, 4 were"},
		{"neither sent nor discarded", func(r *result) { r.discarded = nil }, "4 messages were enqueued, 3 ended"},
		{"twice", func(r *result) { r.twice = 1 }, "1 messages were delivered twice"},
	}
	for _, test := range tests {
		spoilt := complete()
		test.spoil(&spoilt)
		for i, results := range [][2]result{{spoilt, complete()}, {complete(), spoilt}} {
			err := report(&bytes.Buffer{}, results[0], results[1])
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s, run %d: got %v, want %q", test.name, i, err, test.want)
			}
		}
	}
}

func TestReportOfAMissingMessageStillHasItsLastLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := complete()
	r.sent = 2
	_ = report(&out, r, complete())
	want := "\ndemo: sent 2 of 3, commit to send p50 1.00 ms p99 1.00 ms, scheduled late p50 3.00 ms p99 3.00 ms\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %s, want at its end %s", &out, want)
	}
}

func TestPercentileIsTheValueThatSoManyDoNotExceed(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	tests := []struct {
		values []time.Duration
		p      float64
		want   time.Duration
	}{
		{nil, 50, 0}, {hundred[:1], 99, 1}, {hundred[:2], 50, 1}, {hundred[:3], 50, 2},
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100},
	}
	for _, test := range tests {
		if got := percentile(test.values, test.p); got != test.want {
			t.Errorf("p%v of %d: got %d, want %d", test.p, len(test.values), got, test.want)
		}
	}
}

func TestRepeatedDeliveryIsExcusedOnlyByAnAttemptWithoutAnswer(t *testing.T) {
	t.Parallel()
	for unanswered, want := range [][2]int{{0, 1}, {1, 0}, {1, 0}} { // repeated, twice
		s := newStub()
		defer s.close()
		s.delivered["k"] = 2
		j := newJournal()
		j.called(transporte.Message{ID: "1", IdempotencyKey: "k"}, time.Now())
		j.entries["1"].unanswered = unanswered
		if r := j.result(s); r.repeated != want[0] || r.twice != want[1] {
			t.Errorf("%d unanswered: got %d and %d, want %v", unanswered, r.repeated, r.twice, want)
		}
	}
}
