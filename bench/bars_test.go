package main

import (
	"strings"
	"testing"
)

func TestRatioComparesWhatWasMeasuredInTheSameRound(t *testing.T) {
	t.Parallel()
	b := newBench(options{})
	// The machine was ten times slower in the second round, for both.
	b.addRounds(figure{suite: "throughput", disk: "plain", contender: "ours, tuned", load: "no-op", metric: "rate"}, []float64{2000, 210, 1900})
	b.addRounds(figure{suite: "throughput", disk: "plain", contender: "River, tuned", load: "no-op", metric: "rate"}, []float64{1000, 100, 1000})
	for _, bar := range bars {
		want := "bar " + bar.name + " - " + bar.bound() + " short" // nothing was measured for it
		if bar.name == "drain-vs-river" {
			want = "bar drain-vs-river 2.00 >=2 ok"
		}
		if got := bar.line(b); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBarIsShortOnTheWrongSideOfItsTarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bar  bar
		v    float64
		want string
	}{
		{bar{target: 1.5}, 1.5, "ok"},
		{bar{target: 1.5}, 1.51, "short"},
		{bar{target: 8, atLeast: true}, 8, "ok"},
		{bar{target: 8, atLeast: true}, 7.99, "short"},
	} {
		if got := c.bar.verdict(c.v); got != c.want {
			t.Errorf("%s with %g: got %s, want %s", c.bar.bound(), c.v, got, c.want)
		}
	}
}

func TestEightRelaysThatSendARowTwiceAreWorthNothing(t *testing.T) {
	t.Parallel()
	b := newBench(options{})
	f := figure{suite: "relays", disk: "plain", contender: oursTuned.name}
	for _, count := range []int{1, 8} {
		f.load, f.metric = relaysLoad(count), "rate"
		b.addRounds(f, []float64{1000})
		f.metric, f.rounds, f.value = "sent twice", nil, 0
		b.add(f)
	}
	if v, ok := eightRelays(b); !ok || v != 1 {
		t.Errorf("got %g, %v, want 1", v, ok)
	}
	b.figures[len(b.figures)-1].value = 1
	if v, ok := eightRelays(b); !ok || v != 0 {
		t.Errorf("with a row sent twice: got %g, %v, want 0", v, ok)
	}
}

func TestBarNamesAreThoseOfThePromises(t *testing.T) {
	t.Parallel()
	var names []string
	for _, bar := range bars {
		names = append(names, bar.name)
	}
	const want = "idle-p50 idle-p99 idle-vs-river steady-p99 late-p99 drain-vs-river drain-vs-floor drain-default " +
		"writers-plain writers-slow writers-vs-notify history snapshot relays empty-claims memory " +
		"senders-email senders-webhook senders-smtp senders-hang"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
