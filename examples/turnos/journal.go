package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// journal notes what becomes of each message.
type journal struct {
	lines chan string   // one for each result
	ended chan struct{} // has one element when a message has ended since

	mu         sync.Mutex
	commits    map[string]*commit // by tenant and key, of messages that are due at once
	entries    map[string]*entry  // by row id
	duplicates int                // bookings
	enqueued   int                // messages
	sendable   int                // messages that nothing but a fault can keep from being sent
	finished   int                // messages
}

// entry is one message.
type entry struct {
	transporte.Message           // of the first attempt, without data
	begun              time.Time // when the sender was first called
	commit             *commit   // nil when it was scheduled
	unanswered         int       // attempts that may have arrived
	results            []relay.Recorded
}

func newJournal() *journal {
	return &journal{
		lines: make(chan string, 4096), ended: make(chan struct{}, 1),
		commits: map[string]*commit{}, entries: map[string]*entry{},
	}
}

// print writes lines until the channel is closed. The relay only fills the channel: it does not wait for a terminal.
func (j *journal) print(out io.Writer) {
	for line := range j.lines {
		fmt.Fprintln(out, line)
	}
}

// expect gives the context in which to make a booking.
func (j *journal) expect(ctx context.Context, b Booking) context.Context {
	key := b.Tenant + ":" + b.confirmation().IdempotencyKey
	c := new(commit)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.commits[key] == nil { // otherwise it is a duplicate, whose COMMIT causes nothing
		j.commits[key] = c
	}
	return timed(ctx, c)
}

// duplicate counts a booking that changed nothing.
func (j *journal) duplicate() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.duplicates++
}

// enqueue counts the messages of a booking that is new.
func (j *journal) enqueue(b Booking) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range []outbox.Message{b.confirmation(), b.reminder()} {
		j.enqueued++
		if canBeSent(m) {
			j.sendable++
		}
	}
}

// canBeSent tells whether nothing but a fault can keep m from being sent.
func canBeSent(m outbox.Message) bool {
	_, hasAccount := accounts[m.TenantID]
	return m.Channel == "correo" || hasAccount && approved[m.Template]
}

// watch gives senders that note when they are called.
func (j *journal) watch(senders relay.Senders) relay.Senders {
	watched := relay.Senders{}
	for channel, sender := range senders {
		watched[channel] = transporte.Func(func(ctx context.Context, m transporte.Message) (string, error) {
			j.called(m, time.Now())
			id, err := sender.Send(ctx, m)
			var failed *transporte.Error
			if errors.As(err, &failed) && failed.Uncertain {
				j.mu.Lock()
				defer j.mu.Unlock()
				j.entries[m.ID].unanswered++
			}
			return id, err
		})
	}
	return watched
}

func (j *journal) called(m transporte.Message, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries[m.ID] == nil {
		m.Data = nil // not ours to keep
		j.entries[m.ID] = &entry{Message: m, begun: at, commit: j.commits[m.IdempotencyKey]}
	}
}

// recorded hears from the relay that a result stands in the table.
func (j *journal) recorded(r relay.Recorded) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[r.ID]
	if e == nil {
		return // given back before its first attempt
	}
	e.results = append(e.results, r)
	j.lines <- line(e, time.Now())
	switch r.Outcome {
	case relay.Sent, relay.Discarded, relay.Failed:
		j.finished++
		select {
		case j.ended <- struct{}{}:
		default:
		}
	}
}

// wait returns when every enqueued message has ended, or when none has for as long as patience: some are missing then.
func (j *journal) wait(ctx context.Context, patience time.Duration) error {
	for {
		j.mu.Lock()
		complete := j.finished == j.enqueued
		j.mu.Unlock()
		if complete {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.ended:
		case <-time.After(patience):
			return nil
		}
	}
}
