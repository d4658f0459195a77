package sendertest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// oddBodies answer anything but what was asked for.
var oddBodies = []struct {
	name  string
	write func(w http.ResponseWriter)
}{
	{"empty", func(http.ResponseWriter) {}},
	{"HTML", text("<!doctype html><html><title>Bad gateway: Ana</title></html>")},
	{"broken JSON", text(`{"id": "ana`)},
	{"JSON without an id", text(`{}`)},
	{"null", text(`null`)},
	{"a list", text(`[{"id":"1"}]`)},
	{"a text", text(`"ana"`)},
	{"no text at all", text("\x00\xff\xfe")},
	{"everything of the wrong type", text(`{"id":{},"messages":[{"id":7}],"name":5,"message":[],"error":[{"code":"131026"}]}`)},
	{"error is a list", text(`{"id":[],"messages":{},"error":["ana"]}`)},
	{"cut off", func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		text(`{"id":"1`)(w)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}},
	{"huge", text(`{"fill":"` + strings.Repeat("a", 1<<20) + `","id":"1","messages":[{"id":"1"}]}`)},
}

func text(s string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = io.WriteString(w, s) }
}

// OddAnswers checks that a message which was taken counts as sent, with an empty id, whatever the answer's body is; and
// that a failure whose body makes no sense is told by its status.
func OddAnswers(t *testing.T, send Send) {
	for _, odd := range oddBodies {
		for status, want := range map[int]transporte.Error{
			200: {},
			202: {},
			302: {Category: "http_302", Code: "http_302"},
			500: {Category: outbox.Network, Code: "http_500", Uncertain: true},
		} {
			t.Run(odd.name+" with "+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				s := Server(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodPost {
						t.Errorf("got a %s, want no redirect followed", r.Method)
					}
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(status)
					odd.write(w)
				})
				id, err := send(t.Context(), newClient(t), s.URL)
				if want.Category != "" {
					Want(t, err, want)
				} else if id != "" || err != nil {
					t.Errorf("got %q, %v, want sent without an id", id, err)
				}
			})
		}
	}
	for status, want := range map[int]transporte.Error{
		200: {},
		503: {Category: outbox.Network, Code: "http_503", Uncertain: true},
	} {
		t.Run("a byte at a time until the deadline, with "+http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := Server(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for r.Context().Err() == nil {
					_, _ = io.WriteString(w, "{")
					_ = http.NewResponseController(w).Flush()
					<-tick.C
				}
			})
			attempt := NewAttempt()
			client := newClient(t)
			client.Transport = expireAtBody{client.Transport, attempt}
			id, err := send(attempt, client, s.URL)
			if want.Category != "" {
				Want(t, err, want)
			} else if id != "" || err != nil {
				t.Errorf("got %q, %v, want sent without an id", id, err)
			}
		})
	}
}

// expireAtBody lets an attempt's deadline pass when the answer's header has come.
type expireAtBody struct {
	http.RoundTripper
	attempt *Attempt
}

func (e expireAtBody) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.RoundTripper.RoundTrip(r)
	e.attempt.Expire()
	return response, err
}

func (e expireAtBody) CloseIdleConnections() {
	e.RoundTripper.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}

// Waits checks that a sender hands on how long a destination asks to wait.
func Waits(t *testing.T, send Send) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "120", 2 * time.Minute},
		{"Retry-After", now.Add(time.Hour).Format(http.TimeFormat), time.Hour},
		{"Retry-After", now.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"Retry-After", "-120", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", strings.Repeat("9", 400), 24 * time.Hour},
		{"ratelimit-reset", "30", 30 * time.Second},
		{"ratelimit-reset", "-30", 0},
		{"ratelimit-reset", "soon", 0},
		{"ratelimit-reset", strings.Repeat("9", 400), 24 * time.Hour},
		{"X-RateLimit-Reset", "30", 30 * time.Second},
		{"X-RateLimit-Remaining", "30", 0}, // a number of requests
	}
	for _, test := range tests {
		t.Run(test.header+" "+test.value[:min(len(test.value), 30)], func(t *testing.T) {
			t.Parallel()
			s := Server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", now.Format(http.TimeFormat))
				w.Header().Set(test.header, test.value)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			_, err := send(t.Context(), newClient(t), s.URL)
			Want(t, err, transporte.Error{Category: outbox.Limit, Code: "http_429", RetryAfter: test.want})
		})
	}
}

// Faults checks a table row by row: for each status, code and text that a row speaks of, the provider answers with body,
// and the sender must say what the row says. The code unknown is one that the table does not have.
func Faults(t *testing.T, table httpsend.Table, unknown string, body func(code, text string) string, send Send) {
	for _, row := range table {
		for _, status := range examples(row.Status, "400", "429") {
			for _, code := range examples(row.Code, "", unknown) {
				t.Run(status+" "+code+" "+row.Mentions, func(t *testing.T) {
					t.Parallel()
					checkFault(t, row, status, code, body, send)
				})
			}
		}
	}
}

func checkFault(t *testing.T, row httpsend.Row, status, code string, body func(code, text string) string, send Send) {
	s := Server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0'))
		_, _ = io.WriteString(w, body(code, "Ana: "+strings.ToUpper(row.Mentions)+"."))
	})
	_, err := send(t.Context(), newClient(t), s.URL)
	if code == "" {
		code = "http_" + status
	}
	Want(t, err, transporte.Error{Category: row.Category, Code: code, RetryAfter: row.Wait, Uncertain: row.Uncertain})
}

// examples are what patterns stand for, anything if there are none.
func examples(patterns string, anything ...string) []string {
	switch patterns {
	case "":
		return anything
	case httpsend.None:
		return []string{""}
	}
	all := strings.Fields(patterns)
	for i, pattern := range all {
		if pattern[0] >= '0' && pattern[0] <= '9' { // in a name, "x" is a letter
			all[i] = strings.ReplaceAll(pattern, "x", "9")
		}
	}
	return all
}
