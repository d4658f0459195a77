package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const (
	// grace is how long a sender may take to return after its context has ended.
	grace = time.Second
	// longestRetryAfter bounds what a destination may ask for.
	longestRetryAfter = 24 * time.Hour
	// shortestConflict is the least wait after conflicto_idempotencia: the destination has to forget the key first.
	shortestConflict = time.Minute
)

// process sends one claimed row, or gives it back when a send could outlast its lease.
func (r *relay) process(row claim.Row) {
	if row.Batch.LeaseLeft() < r.opts.policy(row.Channel).Timeout+sendMargin {
		r.results.release(row)
		return
	}
	sender, known := r.senders[row.Channel]
	if !known {
		r.results.add(r.settle(row, "", &transporte.Error{Category: outbox.Credentials, Code: "transporte_no_configurado"}))
		return
	}
	var attempt Attempt
	if r.opts.Observer.SendStart != nil || r.opts.Observer.SendEnd != nil {
		attempt = attemptOf(row)
	}
	// Not the relay's context: what has begun may finish within its timeout when the relay is asked to stop.
	ctx := context.Background()
	if r.opts.Observer.SendStart != nil {
		ctx = r.opts.Observer.SendStart(ctx, attempt)
	}
	begun := time.Now()
	externalID, failed, abandoned := r.attempt(ctx, sender, row)
	took := time.Since(begun)
	result := r.settle(row, externalID, failed)
	if r.opts.Observer.SendEnd != nil {
		r.opts.Observer.SendEnd(ctx, SendEnd{Attempt: attempt, Took: took, Outcome: outcomeOf(result), Category: result.Category,
			Code: result.Code, Uncertain: failed != nil && failed.Uncertain, Abandoned: abandoned})
	}
	r.results.add(result)
}

type answer struct {
	id     string
	failed *transporte.Error // nil: sent
}

// attempt calls the sender in a goroutine of its own, so that one that ignores its context can be left behind.
func (r *relay) attempt(ctx context.Context, sender transporte.Sender, row claim.Row) (externalID string, failed *transporte.Error, abandoned bool) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.policy(row.Channel).Timeout)
	defer cancel()
	answered := make(chan answer, 1)
	go func() { answered <- r.call(ctx, sender, row) }()
	select {
	case a := <-answered:
		return a.id, a.failed, false
	case <-ctx.Done():
	}
	overdue := time.NewTimer(grace)
	defer overdue.Stop()
	select {
	case a := <-answered:
		return a.id, a.failed, false
	case <-overdue.C:
		r.log.Error("sender ignores its context and was left behind", "id", attemptOf(row).ID, "channel", row.Channel)
		return "", &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}, true
	}
}

// call turns a panic into a failure, also one of the error's own methods. Its value is not logged: it may carry the message.
func (r *relay) call(ctx context.Context, sender transporte.Sender, row claim.Row) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("sender panicked", "id", attemptOf(row).ID, "channel", row.Channel, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			a = answer{failed: &transporte.Error{Category: outbox.Network, Code: "transporte_panico", Uncertain: true}}
		}
	}()
	id, err := sender.Send(ctx, message(row))
	return answer{id, failure(ctx, err)}
}

// failure reads a sender's error, nil when there is none.
func failure(ctx context.Context, err error) *transporte.Error {
	var failed *transporte.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed != nil:
		return failed
	case ctx.Err() != nil: // it says no more than that the context ended
		return &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}
	}
	return &transporte.Error{Code: "transporte_excepcion"}
}

func message(row claim.Row) transporte.Message {
	m := transporte.Message{
		ID: uuid.UUID(row.ID).String(), TenantID: row.TenantID, Channel: row.Channel, Destination: row.Destination,
		Template: row.Template, Data: row.Data, IdempotencyKey: row.TenantID + ":" + row.Key,
		Attempt: row.Attempts, MaxAttempts: row.MaxAttempts, ScheduledFor: row.Scheduled, OrderingKey: row.OrderingKey,
	}
	if row.Headers != nil {
		m.Headers = headers(row.Headers)
	}
	return m
}

// headers reads a JSON object; values that are not texts are kept as the JSON that they are.
func headers(raw json.RawMessage) map[string]string {
	var values map[string]json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		return nil
	}
	h := make(map[string]string, len(values))
	for name, value := range values {
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		h[name] = s
	}
	return h
}

func attemptOf(row claim.Row) Attempt {
	return Attempt{ID: uuid.UUID(row.ID).String(), TenantID: row.TenantID, Channel: row.Channel, Template: row.Template,
		IdempotencyKey: row.Key, Number: row.Attempts, Late: row.Late + time.Since(row.Batch.TakenAt), headers: string(row.Headers)}
}

// settle decides what a send's answer means for its row.
func (r *relay) settle(row claim.Row, externalID string, failed *transporte.Error) claim.Result {
	if failed == nil {
		return claim.Result{Row: row, State: outbox.Sent, ExternalID: externalID}
	}
	policy := r.opts.policy(row.Channel)
	result := claim.Result{Row: row, MaxAttempts: max(policy.MaxAttempts, row.MaxAttempts), Category: outbox.ShortCode(cmp.Or(failed.Category, outbox.Network)), Code: outbox.ShortCode(failed.Code)}
	switch {
	case outbox.Classify(result.Category) == outbox.Permanent:
		result.State = outbox.Discarded
	case row.Attempts >= result.MaxAttempts:
		result.State = outbox.Failed
	default:
		result.State = outbox.Pending
		result.RetryIn = max(policy.Backoff.Delay(row.Attempts-1), min(failed.RetryAfter, longestRetryAfter))
		if result.Category == outbox.IdempotencyConflict {
			result.RetryIn = max(result.RetryIn, shortestConflict)
		}
	}
	return result
}
