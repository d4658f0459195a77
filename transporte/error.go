package transporte

import (
	"cmp"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Error is a failed send as the relay needs it. It has no room for a provider's text, which could carry a recipient or a
// body into logs and tables.
type Error struct {
	// Category decides what happens: see outbox.Classify. Empty counts as outbox.Network.
	Category string
	// Code is the provider's machine name or number, such as "131056" or "rate_limit_exceeded". It is shown and stored as
	// outbox.ShortCode leaves it.
	Code string
	// RetryAfter is the shortest wait that the destination asked for. Zero when it did not. At most 24 h are honoured.
	RetryAfter time.Duration
	// Uncertain says that the request may have arrived: a timeout, a connection lost after the request was written.
	Uncertain bool
}

func (e *Error) Error() string {
	s := "send failed: " + outbox.ShortCode(cmp.Or(e.Category, outbox.Network))
	if e.Code != "" {
		s += " (" + outbox.ShortCode(e.Code) + ")"
	}
	if e.Uncertain {
		s += ", outcome unknown"
	}
	return s
}
