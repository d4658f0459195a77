package sendertest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	messages    = 10_000
	concurrency = 64
)

// Load sends 10,000 messages, 64 at once, and checks that each gets its own answer and that connections are used again.
// The handler answers with the message's own id as the provider's; newSender makes the sender, as a function that sends
// the message with an id.
func Load(t *testing.T, answer http.HandlerFunc,
	newSender func(client *http.Client, baseURL string) func(ctx context.Context, id string) (string, error)) {
	t.Helper()
	var dialled atomic.Int64
	s := httptest.NewUnstartedServer(answer)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dialled.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	send := newSender(newClient(t), s.URL)

	var next atomic.Int64
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for n := next.Add(1); n <= messages; n = next.Add(1) {
				want := strconv.FormatInt(n, 10)
				got, err := send(t.Context(), want)
				if got != want || err != nil {
					t.Errorf("message %s: got %q, %v", want, got, err)
					return
				}
			}
		})
	}
	workers.Wait()
	// A dial that comes too late for its request leaves a connection more; one for each message would be thousands.
	if n := dialled.Load(); n > 4*concurrency {
		t.Errorf("got %d connections, want about %d", n, concurrency)
	}
}
