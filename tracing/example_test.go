package tracing_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/tracing"
)

func ExampleObserver() {
	// Where messages are enqueued: the span under way goes into the headers.
	enqueue := func(ctx context.Context, tx pgx.Tx, m outbox.Message) error {
		m.Headers = map[string]string{}
		propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(m.Headers))
		_, err := outbox.Table{}.Enqueue(ctx, tx, m)
		return err
	}
	_ = enqueue

	// Where they are sent: each send is a span that is linked to it.
	_ = relay.Options{Observer: tracing.Observer(otel.GetTracerProvider(), tracing.Options{})}
}
