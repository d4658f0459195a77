package outbox

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// least, middle and greatest are the ends and the centre of what rand.Float64 returns.
var least, middle, greatest = 0.0, 0.5, math.Nextafter(1, 0)

func TestBackoffDoublesFromThirtySecondsAndStaysSpreadBelowOneHour(t *testing.T) {
	tests := []struct {
		earlier          int
		low, wait, below time.Duration
	}{
		{-1, 24 * time.Second, 30 * time.Second, 36 * time.Second},
		{0, 24 * time.Second, 30 * time.Second, 36 * time.Second},
		{1, 48 * time.Second, time.Minute, 72 * time.Second},
		{2, 96 * time.Second, 2 * time.Minute, 144 * time.Second},
		{6, 1536 * time.Second, 32 * time.Minute, 2304 * time.Second},
		{7, 40 * time.Minute, 50 * time.Minute, time.Hour},
		{63, 40 * time.Minute, 50 * time.Minute, time.Hour},
		{64, 40 * time.Minute, 50 * time.Minute, time.Hour},
		{math.MaxInt, 40 * time.Minute, 50 * time.Minute, time.Hour},
	}
	for _, test := range tests {
		for random, want := range map[float64]time.Duration{least: test.low, middle: test.wait, greatest: test.below} {
			got := Backoff{}.delay(test.earlier, random)
			if (got - want).Abs() > time.Microsecond {
				t.Errorf("after %d earlier failures, random %v: got %v, want %v", test.earlier, random, got, want)
			}
		}
	}
}

func TestBackoffTakesEachFieldIntoAccount(t *testing.T) {
	tests := []struct {
		name    string
		b       Backoff
		earlier int
		random  float64
		want    time.Duration
	}{
		{"base", Backoff{Base: time.Second}, 0, middle, time.Second},
		{"factor", Backoff{Base: time.Second, Factor: 3}, 2, middle, 9 * time.Second},
		{"factor 1 does not grow", Backoff{Base: time.Second, Factor: 1}, math.MaxInt, middle, time.Second},
		{"cap without jitter", Backoff{Base: time.Second, Factor: 3, Cap: 10 * time.Second, Jitter: -1}, 5, middle, 10 * time.Second},
		{"cap with jitter", Backoff{Base: time.Second, Cap: 12 * time.Second, Jitter: 0.5}, 9, least, 4 * time.Second},
		{"base above one hour", Backoff{Base: 24 * time.Hour, Jitter: -1}, 3, middle, 24 * time.Hour},
		{"negative jitter is none, at least", Backoff{Jitter: -0.5}, 0, least, 30 * time.Second},
		{"negative jitter is none, at most", Backoff{Jitter: -0.5}, 0, greatest, 30 * time.Second},
		{"jitter 1 may not wait", Backoff{Jitter: 1}, 0, least, 0},
		{"jitter 1 may wait twice as long", Backoff{Base: time.Minute, Jitter: 1}, 0, greatest, 2 * time.Minute},
	}
	for _, test := range tests {
		if got := test.b.delay(test.earlier, test.random); (got - test.want).Abs() > time.Microsecond {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// backoffs are valid ones at the bounds of every field.
func backoffs(t *testing.T) []Backoff {
	var all []Backoff
	for _, base := range []time.Duration{0, 1, time.Second, 24 * time.Hour, math.MaxInt64} {
		for _, factor := range []float64{0, 1, math.Nextafter(1, 2), 2, 10, math.MaxFloat64, math.Inf(1)} {
			for _, limit := range []time.Duration{0, max(base, 30*time.Second), max(base, 100*time.Hour), math.MaxInt64} {
				for _, jitter := range []float64{0, math.SmallestNonzeroFloat64, 0.2, 1, -1, math.Inf(-1)} {
					b := Backoff{Base: base, Factor: factor, Cap: limit, Jitter: jitter}
					if err := b.Validate(); err != nil {
						t.Fatalf("%+v: %v", b, err)
					}
					all = append(all, b)
				}
			}
		}
	}
	return all
}

func TestDelayIsNeverNegativeNorAboveCapNorShorterAfterMoreFailures(t *testing.T) {
	for _, b := range backoffs(t) {
		for _, random := range []float64{least, 0.25, middle, greatest} {
			previous := time.Duration(0)
			for _, earlier := range []int{math.MinInt, -1, 0, 1, 2, 63, 64, 310, 1024, math.MaxInt} {
				got := b.delay(earlier, random)
				if got < 0 || got > b.cap() {
					t.Errorf("%+v, %d earlier, random %v: got %d ns, want 0 to %d", b, earlier, random, got, b.cap())
				}
				if got < previous {
					t.Errorf("%+v, %d earlier, random %v: got %v, want at least %v as before", b, earlier, random, got, previous)
				}
				previous = got
			}
			if b.delay(math.MinInt, random) != b.delay(0, random) {
				t.Errorf("%+v, random %v: a negative count waits differently from none", b, random)
			}
		}
	}
}

func TestDelayReachesACapThatHasNoJitter(t *testing.T) {
	for _, limit := range []time.Duration{30 * time.Second, 100 * time.Hour, math.MaxInt64} {
		b := Backoff{Cap: limit, Jitter: -1}
		if got := b.delay(1024, middle); got != limit {
			t.Errorf("got %d ns, want the cap of %d", got, limit)
		}
	}
}

func TestDelaySpreadsMessagesThatFailedTogether(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 1000 {
		got := Backoff{}.Delay(0)
		if got < 24*time.Second || got > 36*time.Second {
			t.Fatalf("got %v, want 30 s, 20 %% more or less", got)
		}
		seen[got.Truncate(time.Second)] = true
	}
	if len(seen) != 12 {
		t.Errorf("got waits in %d of the 12 seconds from 24 to 36, want all", len(seen))
	}
}

func TestValidateHoldsEachFieldOfABackoffToItsBounds(t *testing.T) {
	tests := []struct {
		b     Backoff
		field string // empty: valid
	}{
		{Backoff{}, ""},
		{Backoff{Base: 1}, ""},
		{Backoff{Base: -1}, "Base"},
		{Backoff{Factor: 1}, ""},
		{Backoff{Factor: math.Nextafter(1, 0)}, "Factor"},
		{Backoff{Factor: -2}, "Factor"},
		{Backoff{Factor: math.NaN()}, "Factor"},
		{Backoff{Base: time.Minute, Cap: time.Minute}, ""},
		{Backoff{Base: time.Minute, Cap: time.Minute - 1}, "Cap"},
		{Backoff{Cap: 30 * time.Second}, ""},
		{Backoff{Cap: 30*time.Second - 1}, "Cap"}, // below the default Base
		{Backoff{Cap: -1}, "Cap"},
		{Backoff{Base: 2 * time.Hour}, ""}, // the default Cap makes room
		{Backoff{Jitter: 1}, ""},
		{Backoff{Jitter: math.Nextafter(1, 2)}, "Jitter"},
		{Backoff{Jitter: -1}, ""},
		{Backoff{Jitter: math.NaN()}, "Jitter"},
	}
	for _, test := range tests {
		err := test.b.Validate()
		if test.field == "" {
			if err != nil {
				t.Errorf("%+v: got %v, want it valid", test.b, err)
			}
			continue
		}
		if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), "Backoff."+test.field+" must") {
			t.Errorf("%+v: got %v, want ErrInvalidOptions that names %s", test.b, err, test.field)
		}
	}
}
