// Package tracing makes an OpenTelemetry span of each send.
//
//	opts.Observer = relay.Join(m.Observer(), tracing.Observer(provider, tracing.Options{}))
//
// An application that enqueues with the header traceparent, in the form of the W3C (https://www.w3.org/TR/trace-context/),
// finds its messages again: each attempt to send one is a span that is linked to the one that enqueued it. The sender gets
// the span's context, so what it does in turn, such as a request, is below it.
//
// Spans follow the semantic conventions for messaging. They hold the channel and the row's id, tenant, template, attempt,
// outcome, category and code; never a recipient, an idempotency key or anything of the payload.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// Options of the tracing. The zero value works.
type Options struct {
	// Continue puts each send into the trace of the span that enqueued it. Otherwise it begins a trace of its own with a
	// link there: a message may be sent days later, when its trace has long been stored.
	Continue bool
}

// Observer is what the relay reports to. Its spans come from provider.
func Observer(provider trace.TracerProvider, opts Options) relay.Observer {
	t := tracer{provider.Tracer("github.com/mafesoftware/outbox-relay/tracing"), opts}
	return relay.Observer{SendStart: t.start, SendEnd: t.end}
}

type tracer struct {
	trace.Tracer
	opts Options
}

// The conventions have no words for these.
const (
	tenantKey   = attribute.Key("outbox.tenant")
	templateKey = attribute.Key("outbox.template")
	attemptKey  = attribute.Key("outbox.attempt")
	outcomeKey  = attribute.Key("outbox.outcome")
	codeKey     = attribute.Key("outbox.code")
)

// fixed says what kind of span it is.
var fixed = []attribute.KeyValue{semconv.MessagingSystemKey.String("outbox"), semconv.MessagingOperationName("send"), semconv.MessagingOperationTypeSend}

func (t tracer) start(ctx context.Context, a relay.Attempt) context.Context {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(fixed...),
		trace.WithAttributes(semconv.MessagingDestinationName(a.Channel))}
	if origin := origin(a); origin.IsValid() && t.opts.Continue {
		ctx = trace.ContextWithRemoteSpanContext(ctx, origin)
	} else if origin.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	ctx, span := t.Start(ctx, "send "+a.Channel, opts...)
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingMessageID(a.ID), tenantKey.String(a.TenantID), templateKey.String(a.Template), attemptKey.Int(a.Number))
	}
	return ctx
}

// origin is the span that enqueued the message, if its headers say.
func origin(a relay.Attempt) trace.SpanContext {
	headers := a.Headers()
	if headers == nil {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(headers)))
}

func (t tracer) end(ctx context.Context, e relay.SendEnd) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(outcomeKey.String(string(e.Outcome)))
		if e.Outcome != relay.Sent {
			span.SetAttributes(semconv.ErrorTypeKey.String(errorType(e.Category)), codeKey.String(e.Code))
			span.SetStatus(codes.Error, e.Category)
		}
	}
	span.End()
}

// errorType is a category of the contract: the attribute must have few values.
func errorType(category string) string {
	if outbox.Known(category) {
		return category
	}
	return semconv.ErrorTypeOther.Value.AsString()
}
