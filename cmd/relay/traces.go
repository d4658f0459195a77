package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/tracing"
)

// traces are where spans go.
type traces struct {
	*sdktrace.TracerProvider
	opts tracing.Options
}

// newTraces gives nil without an endpoint. The variables of OpenTelemetry for the sampler, the service's name and the
// resource are heard.
func newTraces(ctx context.Context, t config.Tracing, log *slog.Logger) (*traces, error) {
	if t.Endpoint == "" {
		return nil, nil
	}
	headers := make(map[string]string, len(t.Headers))
	for name, value := range t.Headers {
		headers[name] = string(value)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(tracesURL(string(t.Endpoint))), otlptracehttp.WithHeaders(headers))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("outbox-relay"), semconv.ServiceVersion(versionName())), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: %w: mend OTEL_RESOURCE_ATTRIBUTES", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are not sent", "err", describe(err)) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &traces{provider, tracing.Options{Continue: on(t.Continue)}}, nil
}

// tracesURL completes an endpoint without a path as OpenTelemetry does with OTEL_EXPORTER_OTLP_ENDPOINT.
func tracesURL(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		return u.String()
	}
	return endpoint
}
