package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/tracing"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID      = "00f067aa0ba902b7"
	traceparent = "00-" + traceID + "-" + spanID + "-01"
)

// send enqueues messages and has a relay send them once. It gives their spans by template.
func send(t *testing.T, opts tracing.Options, sender transporte.Func, messages ...outbox.Message) map[string]tracetest.SpanStub {
	t.Helper()
	pool := pgtest.Pool(t)
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		m.TenantID, m.Channel, m.Destination, m.IdempotencyKey = "3f1b6a52-9c0e-4a7c-8f0d-2b9f5f1f7a10", "correo", "ana@example.com", "alta-ana-"+m.Template
		m.Data = map[string]string{"nombre": "Ana"}
		if _, err := (outbox.Table{}).Enqueue(t.Context(), tx, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	summary, err := relay.RunOnce(t.Context(), pool, outbox.Table{}, relay.Senders{"correo": sender},
		relay.Options{Observer: tracing.Observer(provider, opts), Log: slog.New(slog.DiscardHandler)})
	if err != nil || summary.Claimed != len(messages) {
		t.Fatalf("got %+v, %v, want %d claimed", summary, err, len(messages))
	}
	byTemplate := make(map[string]tracetest.SpanStub)
	for _, s := range spans.GetSpans() {
		byTemplate[value(s, "outbox.template")] = s
	}
	return byTemplate
}

func value(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

func TestASendIsASpanLinkedToTheOneThatEnqueued(t *testing.T) {
	t.Parallel()
	var inSender trace.SpanContext
	s := send(t, tracing.Options{}, func(ctx context.Context, _ transporte.Message) (string, error) {
		inSender = trace.SpanContextFromContext(ctx)
		return "", nil
	}, outbox.Message{Template: "bienvenida", Headers: map[string]string{"traceparent": traceparent, "tracestate": "a=b"}})["bienvenida"]
	if s.Name != "send correo" || s.SpanKind != trace.SpanKindProducer || s.Parent.IsValid() || s.Status.Code != codes.Unset {
		t.Errorf("got %s, kind %v, parent %v, status %v, want a producer's root span", s.Name, s.SpanKind, s.Parent, s.Status)
	}
	if len(s.Links) != 1 || s.Links[0].SpanContext.TraceID().String() != traceID || s.Links[0].SpanContext.SpanID().String() != spanID ||
		s.Links[0].SpanContext.TraceState().String() != "a=b" {
		t.Errorf("got the links %v, want one to %s", s.Links, traceparent)
	}
	if inSender.SpanID() != s.SpanContext.SpanID() {
		t.Errorf("got the span %v in the sender, want %v", inSender.SpanID(), s.SpanContext.SpanID())
	}
	for key, want := range map[attribute.Key]string{
		"messaging.system": "outbox", "messaging.operation.name": "send", "messaging.operation.type": "send",
		"messaging.destination.name": "correo", "outbox.tenant": "3f1b6a52-9c0e-4a7c-8f0d-2b9f5f1f7a10", "outbox.attempt": "1", "outbox.outcome": "sent",
	} {
		if got := value(s, key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if len(value(s, "messaging.message.id")) != 36 {
		t.Errorf("got the message id %q, want the row's", value(s, "messaging.message.id"))
	}
	for _, secret := range []string{"ana@example.com", "Ana", "alta-ana"} {
		if strings.Contains(fmt.Sprintf("%+v", s), secret) {
			t.Errorf("%q is in the span", secret)
		}
	}
}

func TestASendMayContinueTheTrace(t *testing.T) {
	t.Parallel()
	s := send(t, tracing.Options{Continue: true}, func(context.Context, transporte.Message) (string, error) { return "", nil },
		outbox.Message{Template: "bienvenida", Headers: map[string]string{"traceparent": traceparent}})["bienvenida"]
	if s.SpanContext.TraceID().String() != traceID || s.Parent.SpanID().String() != spanID || len(s.Links) != 0 {
		t.Errorf("got trace %v, parent %v, links %v, want %s and no link", s.SpanContext.TraceID(), s.Parent.SpanID(), s.Links, traceparent)
	}
}

func TestAFailedSendIsAnError(t *testing.T) {
	t.Parallel()
	spans := send(t, tracing.Options{}, func(_ context.Context, m transporte.Message) (string, error) {
		if m.Template == "invented" {
			return "", &transporte.Error{Category: "inventada", Code: "7"}
		}
		return "", &transporte.Error{Category: outbox.Rejected, Code: "550"}
	}, outbox.Message{Template: "refused"}, outbox.Message{Template: "invented"})
	for template, want := range map[string][3]string{"refused": {"rechazado", "550", "discarded"}, "invented": {"_OTHER", "7", "retried"}} {
		s := spans[template]
		if got := [3]string{value(s, "error.type"), value(s, "outbox.code"), value(s, "outbox.outcome")}; got != want || s.Status.Code != codes.Error {
			t.Errorf("%s: got %v, status %v, want %v and an error", template, got, s.Status, want)
		}
	}
}

func TestHeadersThatAreNoTraceAreIgnored(t *testing.T) {
	t.Parallel()
	var messages []outbox.Message
	for n, header := range []string{"", "00-0-0-01", "nonsense", "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01"} {
		messages = append(messages, outbox.Message{Template: fmt.Sprint(n), Headers: map[string]string{"traceparent": header, "x": "y"}})
	}
	messages = append(messages, outbox.Message{Template: "none"})
	spans := send(t, tracing.Options{}, func(context.Context, transporte.Message) (string, error) { return "", nil }, messages...)
	if len(spans) != len(messages) {
		t.Errorf("got %d spans, want %d", len(spans), len(messages))
	}
	for template, s := range spans {
		if len(s.Links) != 0 || s.Parent.IsValid() {
			t.Errorf("%s: got links %v and parent %v, want none", template, s.Links, s.Parent)
		}
	}
}

// BenchmarkSend is what tracing adds to one send.
func BenchmarkSend(b *testing.B) {
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	for name, o := range map[string]relay.Observer{
		"off":     relay.Join(),
		"noop":    tracing.Observer(noop.NewTracerProvider(), tracing.Options{}),
		"dropped": tracing.Observer(never, tracing.Options{}),
		"kept":    tracing.Observer(sdktrace.NewTracerProvider(), tracing.Options{}),
	} {
		b.Run(name, func(b *testing.B) {
			a, ctx := relay.Attempt{ID: "7d0c6a52", Channel: "correo", Number: 1}, b.Context()
			b.ReportAllocs()
			for b.Loop() {
				inner := ctx
				if o.SendStart != nil {
					inner = o.SendStart(ctx, a)
				}
				if o.SendEnd != nil {
					o.SendEnd(inner, relay.SendEnd{Attempt: a, Outcome: relay.Sent})
				}
			}
		})
	}
}
