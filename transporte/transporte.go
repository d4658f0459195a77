// Package transporte turns a message into one call to a destination, and the destination's answer into a category that
// the relay can act on. A Sender does the sending; Correo and WhatsApp adapt a provider's function to it; Print writes
// messages instead of sending them. Every Sender may be used by several goroutines at once.
package transporte

import (
	"context"
	"encoding/json"
	"time"
)

// Message is what a Sender gets: one claimed row. A Sender must not change it and must not keep Data after it returns.
type Message struct {
	ID          string // UUID of the row: the same on every attempt
	TenantID    string
	Channel     string
	Destination string // address, number, URL, topic, ...
	Template    string // template, or the event's type
	Data        json.RawMessage
	// IdempotencyKey is "tenant:key", the same on every attempt, for destinations that recognise a repeated request.
	IdempotencyKey string
	Attempt        int // 1 for the first
	MaxAttempts    int
	ScheduledFor   time.Time         // when it fell due at the earliest, by the database's clock
	OrderingKey    string            // empty when it has none
	Headers        map[string]string // nil when it has none
}

// Sender delivers messages of one channel.
type Sender interface {
	// Send delivers m and returns the provider's id, which may be empty. An error is an *Error, or counts as transient
	// (category red, code transporte_excepcion). It must return soon after ctx ends; one that does not is abandoned a
	// second later, and what it returns then is ignored. A panic is a failed attempt.
	Send(ctx context.Context, m Message) (externalID string, err error)
}

// Func is a function that is a Sender.
type Func func(ctx context.Context, m Message) (externalID string, err error)

// Send calls f.
func (f Func) Send(ctx context.Context, m Message) (string, error) { return f(ctx, m) }
