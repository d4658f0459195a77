package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// approved are the WhatsApp templates that the provider knows.
var approved = map[string]bool{"turno_confirmado": true, "turno_recordatorio": true}

// stub stands in for the providers, over HTTP on 127.0.0.1. It misbehaves by a hash of idempotency key and attempt: each
// run meets the same faults.
type stub struct {
	server *httptest.Server

	mu        sync.Mutex
	attempts  map[string]int // by idempotency key
	delivered map[string]int // by idempotency key
}

func newStub() *stub {
	s := &stub{attempts: map[string]int{}, delivered: map[string]int{}}
	s.server = httptest.NewServer(s)
	return s
}

func (s *stub) close() {
	s.server.CloseClientConnections() // some may still wait for an answer
	s.server.Close()
}

// fate is what happens to one request.
type fate int

const (
	answered  fate = iota
	limited        // 429 with Retry-After
	broken         // 500
	lost           // neither delivered nor answered
	swallowed      // delivered, but not answered
)

func fateOf(key string, attempt int) fate {
	h := fnv.New32a()
	fmt.Fprint(h, key, attempt)
	switch n := h.Sum32() % 100; {
	case n < 4:
		return limited
	case n < 8:
		return broken
	case n < 10:
		return lost
	case n < 12:
		return swallowed
	}
	return answered
}

// ServeHTTP takes a message.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct{ Template string }
	// To the end: only then does the server see that the client has given up.
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &message) != nil {
		http.Error(w, `{"code":"bad_request"}`, http.StatusBadRequest)
		return
	}
	channel, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if channel == "whatsapp" && !approved[message.Template] {
		http.Error(w, `{"code":"132001"}`, http.StatusBadRequest)
		return
	}
	switch s.take(channel, r.Header.Get("Idempotency-Key")) {
	case limited:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"code":"rate_limit_exceeded"}`, http.StatusTooManyRequests)
	case broken:
		http.Error(w, "<h1>Internal Server Error</h1>", http.StatusInternalServerError)
	case lost, swallowed:
		<-r.Context().Done()
	default:
		fmt.Fprintf(w, `{"id":"msg-%s"}`, r.Header.Get("Idempotency-Key"))
	}
}

// take decides what happens, and counts. Providers of email recognise a key that they have seen; those of WhatsApp do not.
func (s *stub) take(channel, key string) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[key]++
	f := fateOf(key, s.attempts[key])
	if f != answered && f != swallowed {
		return f
	}
	if s.delivered[key] == 0 || channel == "whatsapp" {
		s.delivered[key]++
	}
	return f
}

// deliveries tells how often the message with a key has arrived.
func (s *stub) deliveries(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered[key]
}
