package main

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

// exported is what a collector of traces was sent.
type exported struct {
	path, key string
	service   string
	span      *otlp.Span
}

// collectorOf is a server that takes OTLP over HTTP.
func collectorOf(t *testing.T) (url string, spans chan exported) {
	t.Helper()
	spans = make(chan exported, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &request); err != nil {
			t.Error(err)
		}
		for _, resource := range request.GetResourceSpans() {
			e := exported{path: r.URL.Path, key: r.Header.Get("X-Key")}
			for _, a := range resource.GetResource().GetAttributes() {
				if a.GetKey() == "service.name" {
					e.service = a.GetValue().GetStringValue()
				}
			}
			for _, scope := range resource.GetScopeSpans() {
				for _, e.span = range scope.GetSpans() {
					spans <- e
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, spans
}

func TestTracesGoToACollectorBeforeTheProcessEnds(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := migrated(t, dsn)
	url, arrived, let := slowReceiver(t)
	close(let)
	traces, spans := collectorOf(t)
	p := startRelay(t, dsn, "tracing: {endpoint: '"+traces+"', headers: {X-Key: abc}}\n"+webhooks(""))
	const origin = "4bf92f3577b34da6a3ce929d0e0e4736"
	insert(t, conn, url, ", cabeceras", `, '{"traceparent": "00-`+origin+`-00f067aa0ba902b7-01"}'`)
	await(t, arrived)
	p.signal(t, syscall.SIGTERM) // the batch has not gone out yet
	if state := p.end(t); state.ExitCode() != 0 {
		t.Errorf("got %v, want exit code 0: %v", state, p.lines())
	}
	select {
	case e := <-spans:
		if e.path != "/v1/traces" || e.key != "abc" || e.service != "outbox-relay" || e.span.GetName() != "send webhook" ||
			e.span.GetKind() != otlp.Span_SPAN_KIND_PRODUCER || len(e.span.GetLinks()) != 1 || hex.EncodeToString(e.span.GetLinks()[0].GetTraceId()) != origin {
			t.Errorf("got %+v, want the send, linked to %s", e, origin)
		}
	default:
		t.Errorf("the collector got nothing: %v", p.lines())
	}
}

func TestACollectorThatIsAwayCostsNoMessage(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := migrated(t, dsn)
	url, arrived, let := slowReceiver(t)
	close(let)
	p := startRelay(t, dsn, "tracing: {endpoint: 'http://127.0.0.1:1'}\n"+webhooks(""))
	insert(t, conn, url, "", "")
	await(t, arrived)
	p.signal(t, syscall.SIGTERM)
	if state := p.end(t); state.ExitCode() != 0 {
		t.Errorf("got %v, want exit code 0: %v", state, p.lines())
	}
	wantState(t, conn, "enviado")
	warned := false
	for _, line := range p.lines() {
		warned = warned || line["level"] == "WARN" && line["msg"] == "traces are not sent"
	}
	if !warned {
		t.Errorf("got the log %v, want a warning", p.lines())
	}
}
