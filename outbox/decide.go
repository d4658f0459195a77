package outbox

import "time"

// Decision is what a relay should do with a row now.
type Decision string

const (
	Send       Decision = "send"        // due: claim it and send it
	Reclaim    Decision = "reclaim"     // its lease has ended: claim it again and send it
	Wait       Decision = "wait"        // not due yet, or held under a lease
	RetryLater Decision = "retry_later" // waits for its next attempt after a failure
	Discard    Decision = "discard"     // terminal, in a state that no relay knows, or out of attempts: never send it
)

// Row is the part of an outbox row that decides what happens to it. A zero time stands for null.
type Row struct {
	State         State
	Attempts      int // attempts begun, the current one included
	MaxAttempts   int
	ScheduledFor  time.Time // not before
	NextAttemptAt time.Time // set by a retry or a release
	LeaseUntil    time.Time // end of the lease
}

// Decide is the claim's rule in Go, for panels and tests. Comparisons with now are inclusive. The SQL claim takes exactly
// the rows for which Decide says Send or Reclaim, and closes those that it discards once they are due.
func Decide(r Row, now time.Time) Decision {
	usedUp := r.Attempts >= r.MaxAttempts
	switch {
	case r.State != Pending && r.State != Processing:
		return Discard
	case r.State == Processing && (r.LeaseUntil.IsZero() || r.LeaseUntil.After(now)):
		return Wait
	case usedUp:
		return Discard
	case r.State == Processing:
		return Reclaim
	case r.ScheduledFor.After(now):
		return Wait
	case r.NextAttemptAt.After(now):
		return RetryLater
	}
	return Send
}
