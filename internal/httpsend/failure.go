package httpsend

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// trace is how far a call got. The hooks run in several goroutines; a dial that is no longer needed goes on in the
// background, so that once the request was written its phases say nothing.
type trace struct {
	dial     atomic.Value // string: the phase of the dial, and the code if it fails
	written  atomic.Bool  // stays set when net/http sends again
	answered atomic.Bool
}

func (t *trace) watch(ctx context.Context) context.Context {
	t.dial.Store("conexion")
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:             func(httptrace.DNSStartInfo) { t.dial.Store("dns") },
		ConnectStart:         func(string, string) { t.dial.Store("conexion") },
		TLSHandshakeStart:    func() { t.dial.Store("tls") },
		WroteHeaders:         func() { t.written.Store(true) },
		GotFirstResponseByte: func() { t.answered.Store(true) },
	})
}

// failure is what a call without an answer means. All of it may heal by itself, a wrong name or certificate too.
func (t *trace) failure(ctx context.Context, err error) *transporte.Error {
	var ours *transporte.Error
	if errors.As(err, &ours) && ours != nil {
		return ours
	}
	return &transporte.Error{Category: outbox.Network, Code: t.code(ctx, err), Uncertain: t.written.Load()}
}

// code looks at ctx first: with context.WithCancelCause the error of net/http is the cause, and not context.Canceled.
func (t *trace) code(ctx context.Context, err error) string {
	var timeout net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "cancelado"
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case t.answered.Load():
		return "respuesta_invalida"
	case t.written.Load():
		return "sin_respuesta"
	}
	return t.dial.Load().(string)
}
