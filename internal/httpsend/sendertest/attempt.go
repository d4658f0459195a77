package sendertest

import (
	"context"
	"sync"
	"time"
)

// Attempt is a context whose deadline passes when Expire is called, so that no test depends on how fast a machine is.
type Attempt struct {
	context.Context
	done    chan struct{}
	expired sync.Once
}

// NewAttempt returns an Attempt that is not expired.
func NewAttempt() *Attempt {
	return &Attempt{Context: context.Background(), done: make(chan struct{})}
}

// Expire lets the deadline pass. It may be called more than once.
func (a *Attempt) Expire() { a.expired.Do(func() { close(a.done) }) }

func (a *Attempt) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

func (a *Attempt) Done() <-chan struct{} { return a.done }

func (a *Attempt) Err() error {
	select {
	case <-a.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
