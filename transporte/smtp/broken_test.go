package smtp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

// phases are the steps of a message to a server with TLS and a login.
var phases = []string{"greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "end"}

// secure is a server that does at step what how says, and the options to get there.
func secure(step, how string) (*server, smtp.Options) {
	s := replying(step, how)
	s.tls, s.offers, s.secure = testAuthority().server, []string{"STARTTLS"}, []string{"AUTH PLAIN"}
	return s, smtp.Options{Username: "club", Password: "hunter2", TLSConfig: testAuthority().trusted}
}

func TestOnlyAConnectionLostAfterTheFinalDotIsUncertain(t *testing.T) {
	t.Parallel()
	for _, step := range phases {
		for _, how := range []string{drop, reset, "no reply at all", "250-begun", flood} {
			if step == "greeting" && how == reset {
				continue // often the client never sees the connection
			}
			t.Run(step+" "+how, func(t *testing.T) {
				t.Parallel()
				s, opts := secure(step, how)
				s.last = step
				failed := failure(t, t.Context(), newClient(t, start(t, s), opts))
				code := "sin_respuesta"
				switch {
				case step == "STARTTLS":
					code = "tls"
				case how == flood || how == "no reply at all":
					code = "respuesta_invalida"
				}
				checkFailure(t, failed, outbox.Network, code, step == "end")
			})
		}
	}
}

func TestSendEndsWithItsContextInEveryPhase(t *testing.T) {
	t.Parallel()
	for _, step := range phases {
		for _, how := range []string{hang, drip} {
			t.Run(step+" "+how, func(t *testing.T) {
				t.Parallel()
				reached := make(chan struct{})
				s, opts := secure(step, how)
				say := s.answer
				s.answer = func(n int, at string) string {
					if at == step {
						close(reached)
					}
					return say(n, at)
				}
				c := newClient(t, start(t, s), opts)
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					<-reached
					cancel(errors.New("a cause of its own"))
				}()
				failed := failure(t, ctx, c)
				checkFailure(t, failed, outbox.Network, "cancelado", step == "end")
			})
		}
	}
}

func TestTheTimeoutBoundsASendWhoseContextHasNone(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"greeting", "EHLO", "MAIL", "RCPT", "DATA", "end"} {
		synctest.Test(t, func(t *testing.T) {
			s := replying(step, hang)
			defer s.stop()
			begun := time.Now()
			checkFailure(t, failure(t, t.Context(), piped(t, s)), outbox.Network, "timeout", step == "end")
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("silence at %s: it took %s, want a minute", step, took)
			}
		})
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, &server{})
	c := newClient(t, s, smtp.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checkFailure(t, failure(t, ctx, c), outbox.Network, "sin_turno", false)
	if opened, _, _ := s.counts(); opened != 0 {
		t.Errorf("got %d connections, want none", opened)
	}
}

// Without its final dot a message is not delivered, so a goodbye that brings the dot must not be said.
func TestABodyThatBreaksOffIsNotDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		s := &server{beforeBody: func() { <-goOn }}
		c := piped(t, s)
		e := reminder
		e.Text = strings.Repeat("x", 64<<10) // more than go-mail keeps back
		ctx, cancel := context.WithCancel(t.Context())
		var id string
		var err error
		var sending sync.WaitGroup
		sending.Go(func() { id, err = c.Send(ctx, e) })
		synctest.Wait() // until it waits for the server to read the text
		cancel()
		sending.Wait()
		checkFailure(t, asFailure(t, id, err), outbox.Network, "cancelado", false)
		close(goOn)
		s.stop()
		if opened, _, messages := s.counts(); messages != 0 || !slices.Contains(s.said(), "1 DATA") {
			t.Errorf("got %d messages over %d connections, %q, want none after DATA", messages, opened, s.said())
		}
	})
}
