package tests

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/relay"
)

// journal remembers what a relay's observer saw, in order.
type journal struct {
	mu     sync.Mutex
	events []event
	grown  chan struct{} // closed when an event is added
}

// event is one call of an observer. what is a woken, listening, failed, sending, or one of relay's own types.
type event struct {
	at   time.Time
	what any
}

type (
	woken     notify.Cause
	sending   relay.Attempt
	listening struct{ err error }
	failed    struct{ err error }
)

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

func (j *journal) observer() relay.Observer {
	return relay.Observer{
		Wake:          func(cause notify.Cause) { j.add(woken(cause)) },
		Claim:         func(c relay.Claim) { j.add(c) },
		SendStart:     func(ctx context.Context, a relay.Attempt) context.Context { j.add(sending(a)); return ctx },
		SendEnd:       func(_ context.Context, e relay.SendEnd) { j.add(e) },
		Recorded:      func(r relay.Recorded) { j.add(r) },
		Listening:     func(err error) { j.add(listening{err}) },
		DatabaseError: func(err error) { j.add(failed{err}) },
	}
}

func (j *journal) add(what any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event{time.Now(), what})
	close(j.grown)
	j.grown = make(chan struct{})
}

// len is a position from which a test can look on.
func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.events)
}

// await waits for an event of type T that matches, from a position on, and gives it with its time and position.
func await[T any](t *testing.T, j *journal, from int, what string, match func(T) bool) (found T, at time.Time, position int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		j.mu.Lock()
		events, grown := j.events, j.grown
		j.mu.Unlock()
		for ; from < len(events); from++ {
			if e, ok := events[from].what.(T); ok && match(e) {
				return e, events[from].at, from
			}
		}
		select {
		case <-grown:
		case <-deadline:
			t.Fatalf("waited %v for %s; last events: %s", patience, what, j.tail(20))
		}
	}
}

// all gives the events of type T from a position on.
func all[T any](j *journal, from int) (found []T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events[min(from, len(j.events)):] {
		if v, ok := e.what.(T); ok {
			found = append(found, v)
		}
	}
	return found
}

func (j *journal) tail(n int) (s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events[max(0, len(j.events)-n):] {
		s += fmt.Sprintf("\n\t%s %T %+v", e.at.Format("05.000"), e.what, e.what)
	}
	return s
}

// awaitListening waits until the relay has said n times that it hears notifications, and gives the last one's time.
func (j *journal) awaitListening(t *testing.T, n int) (at time.Time) {
	t.Helper()
	from := 0
	for range n {
		_, at, from = await(t, j, from, "the relay to hear notifications", func(l listening) bool { return l.err == nil })
		from++
	}
	return at
}

// awaitSent waits until id stands as sent in the table.
func (j *journal) awaitSent(t *testing.T, id string) {
	t.Helper()
	await(t, j, 0, "the record of "+id, func(r relay.Recorded) bool { return r.ID == id && r.Outcome == relay.Sent })
}

// delivery waits until id is sent and recorded, and gives the time of its first send and what woke the relay for it. It
// is for a relay that has nothing else to do.
func (j *journal) delivery(t *testing.T, id string) (cause notify.Cause, at time.Time) {
	t.Helper()
	_, at, position := await(t, j, 0, "the send of "+id, func(s sending) bool { return s.ID == id })
	j.awaitSent(t, id)
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := position; i >= 0; i-- {
		if w, ok := j.events[i].what.(woken); ok {
			return notify.Cause(w), at
		}
	}
	return "", at
}
