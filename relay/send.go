package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
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

// sending is a send under way.
type sending struct {
	r       *relay
	row     *claim.Row
	policy  ChannelOptions
	ctx     context.Context // as the observer gave it
	attempt Attempt         // for the observer
	begun   time.Time
	over    atomic.Bool // answered, or left behind
}

// process sends one claimed row, or gives it back when a send could outlast its lease. A sender that ignores the end of its
// context is left behind: goOn is called then, and process gives false whenever that sender returns.
func (r *relay) process(row *claim.Row, goOn func()) bool {
	s := sending{r: r, row: row, policy: r.policy(row.Channel)}
	if row.Batch.LeaseLeft() < s.policy.Timeout+sendMargin {
		r.results.release(row)
		return true
	}
	sender, known := r.senders[row.Channel]
	if !known {
		r.results.add(s.settle("", &transporte.Error{Category: outbox.Credentials, Code: "transporte_no_configurado"}))
		return true
	}
	// Not the relay's context: what has begun may finish within its timeout when the relay is asked to stop.
	s.ctx = context.Background()
	if r.opts.Observer.SendStart != nil || r.opts.Observer.SendEnd != nil {
		s.attempt = attemptOf(row)
	}
	if r.opts.Observer.SendStart != nil {
		s.ctx = r.opts.Observer.SendStart(s.ctx, s.attempt)
	}
	s.begun = time.Now()
	ctx, cancel := context.WithTimeout(s.ctx, s.policy.Timeout)
	defer cancel()
	// The grace begins once the time is over: in a process that stood still, both would be over at the same moment.
	overdue := time.AfterFunc(s.policy.Timeout, func() { time.AfterFunc(grace, func() { s.leave(goOn) }) })
	a := r.call(ctx, sender, row)
	if s.over.Swap(true) {
		return false
	}
	overdue.Stop()
	s.end(a, false)
	return true
}

// leave leaves a sender behind that ignores its context.
func (s *sending) leave(goOn func()) {
	if s.over.Swap(true) {
		return
	}
	s.r.log.Error("sender ignores its context and was left behind", "id", attemptOf(s.row).ID, "channel", s.row.Channel)
	s.end(answer{failed: &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}}, true)
	goOn()
}

// end reports what came of a send and has it recorded.
func (s *sending) end(a answer, abandoned bool) {
	result := s.settle(a.id, a.failed)
	if s.r.opts.Observer.SendEnd != nil {
		s.r.opts.Observer.SendEnd(s.ctx, SendEnd{Attempt: s.attempt, Took: time.Since(s.begun), Outcome: outcomeOf(result), Category: result.Category,
			Code: result.Code, Uncertain: a.failed != nil && a.failed.Uncertain, Abandoned: abandoned})
	}
	s.r.results.add(result)
}

type answer struct {
	id     string
	failed *transporte.Error // nil: sent
}

// call turns a panic into a failure, also one of the error's own methods. Its value is not logged: it may carry the message.
func (r *relay) call(ctx context.Context, sender transporte.Sender, row *claim.Row) (a answer) {
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
	if err == nil {
		return nil
	}
	var failed *transporte.Error
	switch {
	case errors.As(err, &failed) && failed != nil:
		return failed
	case ctx.Err() != nil: // it says no more than that the context ended
		return &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}
	}
	return &transporte.Error{Code: "transporte_excepcion"}
}

func message(row *claim.Row) transporte.Message {
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

func attemptOf(row *claim.Row) Attempt {
	return Attempt{ID: uuid.UUID(row.ID).String(), TenantID: row.TenantID, Channel: row.Channel, Template: row.Template,
		IdempotencyKey: row.Key, Number: row.Attempts, Late: row.Late + time.Since(row.Batch.TakenAt), headers: string(row.Headers)}
}

// settle decides what a send's answer means for its row.
func (s *sending) settle(externalID string, failed *transporte.Error) claim.Result {
	row, policy := s.row, s.policy
	if failed == nil {
		return claim.Result{Row: row, State: outbox.Sent, ExternalID: externalID}
	}
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
