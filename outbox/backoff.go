package outbox

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Backoff says how long to wait before the next attempt. Its zero value waits 30 s, then doubles up to one hour, each
// time 20 % more or less.
type Backoff struct {
	// Base is the wait after the first failure. Zero means 30 s; negative is invalid.
	Base time.Duration
	// Factor multiplies the wait after each further failure. Zero means 2; otherwise at least 1.
	Factor float64
	// Cap is the longest wait, jitter included. Zero means one hour, or Base if that is longer; otherwise at least Base.
	Cap time.Duration
	// Schedule, if there is one, is the list of waits in place of Base, Factor and Cap: after the first failure the first,
	// and after more failures than it has waits the last. None may be negative.
	Schedule []time.Duration
	// Jitter is the greatest deviation as a fraction of the wait, so that messages which failed together do not come back
	// together. Zero means 0.2; otherwise at most 1; negative means none.
	Jitter float64
}

func (b Backoff) base() time.Duration { return cmp.Or(b.Base, 30*time.Second) }
func (b Backoff) factor() float64     { return cmp.Or(b.Factor, 2) }
func (b Backoff) cap() time.Duration  { return cmp.Or(b.Cap, max(time.Hour, b.base())) }
func (b Backoff) jitter() float64     { return max(0, cmp.Or(b.Jitter, 0.2)) }

// WithDefaults is b with its defaults in place of zeros.
func (b Backoff) WithDefaults() Backoff {
	b.Base, b.Factor, b.Cap = b.base(), b.factor(), b.cap()
	if b.Jitter == 0 { // negative stays: it means none
		b.Jitter = b.jitter()
	}
	return b
}

// Validate returns an error that wraps ErrInvalidOptions and names the field that is out of bounds.
func (b Backoff) Validate() error {
	switch {
	case len(b.Schedule) > 0 && slices.Min(b.Schedule) < 0:
		return invalidField("Backoff.Schedule", "must not have negative waits, got %v", slices.Min(b.Schedule))
	case b.Base < 0:
		return invalidField("Backoff.Base", "must not be negative, got %v", b.Base)
	case math.IsNaN(b.Factor) || b.factor() < 1:
		return invalidField("Backoff.Factor", "must be at least 1, got %v", b.Factor)
	case b.cap() < b.base():
		return invalidField("Backoff.Cap", "must be at least the base (%v), got %v", b.base(), b.Cap)
	case math.IsNaN(b.Jitter) || b.Jitter > 1:
		return invalidField("Backoff.Jitter", "must be at most 1, got %v", b.Jitter)
	}
	return nil
}

// Delay is the wait after the given number of earlier failures: 0 after the first. It is between 0 and Cap, or around the wait in
// the schedule.
func (b Backoff) Delay(earlier int) time.Duration { return b.delay(earlier, rand.Float64()) }

// delay takes its randomness in [0, 1): 0.5 means no deviation.
func (b Backoff) delay(earlier int, random float64) time.Duration {
	earlier = max(earlier, 0)
	deviation := 1 + (random*2-1)*b.jitter()
	if n := len(b.Schedule); n > 0 {
		return time.Duration(min(float64(b.Schedule[min(earlier, n-1)])*deviation, math.MaxInt64/2))
	}
	// The power may be +Inf: min with the cap still gives the right answer, where a product of durations would overflow.
	// The cap leaves room for the jitter, so that capped waits stay spread instead of all being cut to the same length.
	highest := float64(b.cap()) / (1 + b.jitter())
	wait := min(float64(b.base())*math.Pow(b.factor(), float64(earlier)), highest) * deviation
	if wait >= float64(b.cap()) { // before the conversion, which turns a float past the last Duration into a negative one
		return b.cap()
	}
	return time.Duration(wait)
}

// WebhookBackoff spans three days and more, as the Standard Webhooks specification (1.0.0, deliverability) suggests. It
// needs ten attempts.
func WebhookBackoff() Backoff {
	return Backoff{Schedule: []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}}
}
