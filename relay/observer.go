package relay

import (
	"context"
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
)

// Observer hears what a relay does, for metrics, traces and tests. Each function may be nil. They are called by several
// goroutines at once, must return soon, and delay the relay while they run. Join makes one of several.
type Observer struct {
	// Turn: the loop has gone round. The next turn comes within this time; one that never comes is a loop that is stuck.
	Turn func(within time.Duration)
	// Wake: the relay is about to look at the table.
	Wake func(cause notify.Cause)
	// Claim: a claim has ended.
	Claim func(Claim)
	// SendStart: a send is about to begin, after the check of the lease. The context that it returns is the one given or
	// made from it, with a span for example; the sender and SendEnd get it.
	SendStart func(context.Context, Attempt) context.Context
	// SendEnd: a send has ended. Its result is not recorded yet.
	SendEnd func(context.Context, SendEnd)
	// Recorded: what happened to a message stands in the table, or was given up.
	Recorded func(Recorded)
	// Listening: the relay hears notifications (nil), or no longer does (why).
	Listening func(err error)
	// Watching: the relay keeps the insert trigger silent and polls instead (true), or no longer does.
	Watching func(on bool)
	// DatabaseError: a statement has failed. It is tried again.
	DatabaseError func(err error)
}

// Claim is one claim.
type Claim struct {
	Limit  int           // rows asked for
	Rows   int           // rows taken
	Closed int           // rows closed because their attempts were used up
	Took   time.Duration // round trip
	Err    error
}

// Attempt identifies one attempt to send. Of a row that the claim closed, Template and IdempotencyKey are not known.
type Attempt struct {
	ID             string
	TenantID       string
	Channel        string
	Template       string
	IdempotencyKey string // as it was enqueued, without the tenant
	Number         int    // 1 for the first
	// Late is the time from when the message fell due to now: for one that was due at once, from the begin of the
	// transaction that wrote it. Measured by the server's clock up to the claim and by this one's since.
	Late time.Duration

	headers string // JSON, or empty
}

// Headers are the message's, nil when it has none. They are read anew at each call.
func (a Attempt) Headers() map[string]string {
	if a.headers == "" {
		return nil
	}
	return headers([]byte(a.headers))
}

// SendEnd is the end of a send.
type SendEnd struct {
	Attempt
	Took time.Duration
	// Outcome is what will be recorded, unless the message is lost or cannot be written: Sent, Retried, Failed, Discarded.
	Outcome Outcome
	// Category and Code are empty when it was sent.
	Category, Code string
	// Uncertain: it may have arrived all the same.
	Uncertain bool
	// Abandoned: the sender did not return when its context ended. Its goroutine is left behind.
	Abandoned bool
}

// Outcome is what became of a claimed message.
type Outcome string

const (
	Sent      Outcome = "sent"      // enviado
	Retried   Outcome = "retried"   // pendiente again, for later
	Failed    Outcome = "failed"    // fallido: transient failures used up the attempts
	Discarded Outcome = "discarded" // descartado: permanent failure
	Lost      Outcome = "lost"      // another relay has taken it since; nothing was written
	Released  Outcome = "released"  // given back unsent, with its attempt
	Errored   Outcome = "errored"   // its result could not be written; it is sent again when its lease ends
)

// Recorded is the outcome of one claimed message.
type Recorded struct {
	Attempt
	Outcome        Outcome
	Category, Code string
	RetryIn        time.Duration // with Retried
}
