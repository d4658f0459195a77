package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// send sends one message through the senders to a provider that answers with handler.
func send(ctx context.Context, t *testing.T, m transporte.Message, handler http.HandlerFunc) (string, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	senders, err := newSenders(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return senders[m.Channel].Send(ctx, m)
}

var (
	template = transporte.Message{
		TenantID: "00000000-0000-4000-8000-000000000001", Channel: "whatsapp", Destination: "+17875550100",
		Template: "turno_confirmado", Data: []byte(`{"nombre":"Ana","inicio":"07/12 09:30"}`), IdempotencyKey: "1:k",
	}
	email = transporte.Message{
		TenantID: "00000000-0000-4000-8000-000000000004", Channel: "correo", Destination: "ana@example.com",
		Template: "turno_recordatorio", Data: []byte(`{"nombre":"Ana","inicio":"07/12 09:30"}`), IdempotencyKey: "4:k",
	}
)

func TestEachAnswerOfTheProviderGetsItsCategory(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status     int
		body       string
		retryAfter string
		want       transporte.Error
	}{
		{429, `{"code":"too_fast"}`, "7", transporte.Error{Category: "limite", Code: "too_fast", RetryAfter: 7 * time.Second}},
		{429, ``, "", transporte.Error{Category: "limite", Code: "429"}},
		{429, ``, "soon", transporte.Error{Category: "limite", Code: "429"}},
		{429, ``, "9223372036854775807", transporte.Error{Category: "limite", Code: "429", RetryAfter: 24 * time.Hour}},
		{500, `<h1>broken</h1>`, "", transporte.Error{Category: "red", Code: "500"}},
		{503, ``, "", transporte.Error{Category: "red", Code: "503"}},
		{401, ``, "", transporte.Error{Category: "credenciales", Code: "401"}},
		{403, ``, "", transporte.Error{Category: "credenciales", Code: "403"}},
		{400, `{"code":"132001"}`, "", transporte.Error{Category: "plantilla", Code: "132001"}},
		{422, `{"code":"invalid_to"}`, "", transporte.Error{Category: "rechazado", Code: "invalid_to"}},
	}
	for _, test := range tests {
		for _, m := range []transporte.Message{template, email} {
			_, err := send(t.Context(), t, m, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", test.retryAfter)
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			if got, ok := errors.AsType[*transporte.Error](err); !ok || *got != test.want {
				t.Errorf("%s, %d %q: got %+v, want %+v", m.Channel, test.status, test.body, err, test.want)
			}
		}
	}
}

func TestRetryAfterMayBeADate(t *testing.T) {
	t.Parallel()
	if got := retryAfter(time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)); got < 50*time.Second || got > time.Minute {
		t.Errorf("got %v, want about a minute", got)
	}
	if got := retryAfter(time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)); got != 0 {
		t.Errorf("got %v of a past date, want 0", got)
	}
}

func TestProviderThatDoesNotAnswerLeavesTheOutcomeUncertain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := send(ctx, t, template, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1024))
		cancel() // the relay's timeout
		<-r.Context().Done()
	})
	want := transporte.Error{Category: "red", Code: "timeout", Uncertain: true}
	if got, ok := errors.AsType[*transporte.Error](err); !ok || *got != want {
		t.Errorf("got %+v, want %+v", err, want)
	}
}

func TestConnectionLostAfterTheRequestLeavesTheOutcomeUncertain(t *testing.T) {
	t.Parallel()
	_, err := send(t.Context(), t, email, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	want := transporte.Error{Category: "red", Code: "sin_respuesta", Uncertain: true}
	if got, ok := errors.AsType[*transporte.Error](err); !ok || *got != want {
		t.Errorf("got %+v, want %+v", err, want)
	}
}

func TestProviderThatCannotBeReachedHasReceivedNothing(t *testing.T) {
	t.Parallel()
	senders, err := newSenders("http://" + sendertest.Refusing(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = senders["whatsapp"].Send(t.Context(), template)
	want := transporte.Error{Category: "red", Code: "sin_conexion"}
	if got, ok := errors.AsType[*transporte.Error](err); !ok || *got != want {
		t.Errorf("got %+v, want %+v", err, want)
	}
}

func TestAcceptedMessageWithoutAReadableIDIsSent(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{"id":"msg-1"}`: "msg-1", `ok`: ""} {
		id, err := send(t.Context(), t, template, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if err != nil || id != want {
			t.Errorf("%s: got %q, %v, want %q", body, id, err, want)
		}
	}
}
