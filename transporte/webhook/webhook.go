// Package webhook sends messages as signed webhooks, by Standard Webhooks 1.0.0 (https://www.standardwebhooks.com):
//
//	POST /hooks/pedidos HTTP/1.1
//	content-type: application/json
//	webhook-id: 0d7a3c52-b1f0-4e7f-8a90-112233445566
//	webhook-timestamp: 1796050000
//	webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
//
//	{"type":"pedido.creado","timestamp":"2026-11-30T12:00:00Z","data":{"pedido":"p-1001"}}
//
// The body is the message's Data, byte for byte the same on every attempt; so is webhook-id, the row's id, by which a
// receiver recognises a message that comes twice. The timestamp is that of the attempt, so each is signed anew; receivers
// allow five minutes, and refuse everything if the relay's clock is wrong by more.
//
// # Whom it calls
//
// Customers choose the address, and could choose one inside our network. So each address is checked when it is dialled,
// after the name was resolved, whatever it resolved to before: only public addresses are called, those of Options.Allow,
// and with Options.Development those of this host. Redirects are not followed, and the environment's proxy is not asked.
//
// # When it fails
//
// An endpoint that answers 404 is usually being deployed. So every status but 410 and 413 is tried again, and a webhook
// wants a schedule that spans days; see the table in answers.go.
package webhook

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Sender sends webhooks. It may be used by several goroutines at once. There is nothing to close: idle connections end by
// themselves.
type Sender struct {
	find   func(context.Context, transporte.Message) (Endpoint, bool, error)
	client *http.Client
	opts   Options
}

// New returns a Sender, for the channel webhook.
//
// The function find finds the endpoint of a message, usually by m.TenantID or m.Destination, once for each attempt. Not
// found discards the message; an error is transient.
//
// A nil function, and options that make no sense, give an error that wraps outbox.ErrInvalidOptions.
func New(
	find func(ctx context.Context, m transporte.Message) (e Endpoint, found bool, err error),
	opts Options,
) (*Sender, error) {
	if find == nil {
		return nil, invalid("find", "must not be nil")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	client := opts.Client
	if client == nil {
		transport := httpsend.NewTransport()
		transport.DialContext = guard{opts.Allow, opts.Development}.dialer(opts.Resolver).DialContext
		transport.TLSClientConfig = opts.TLSConfig.Clone()
		client = &http.Client{Transport: transport}
	}
	return &Sender{find, httpsend.Client(client), opts}, nil
}

// Send calls the endpoint of m and returns the webhook-id, which is m.ID.
//
// Every error is a *transporte.Error. A status is its code, such as http_404, in the category that the table in answers.go
// gives it, with the wait that the endpoint asks for. Without one it is transient (red), with code timeout, cancelado,
// dns, conexion, tls, sin_respuesta, respuesta_invalida, or credenciales_excepcion (find failed); Uncertain if the request
// was written.
//
// These are permanent and come before the call: rechazado with endpoint_inexistente (not found), url_invalida (not an
// absolute https URL, or with a user in it), puerto_bloqueado, destino_bloqueado (an address that is not public) or
// peticion_invalida (an id with a full stop or beyond ASCII); credenciales with sin_credenciales (no secret) or
// secreto_invalido.
func (s *Sender) Send(ctx context.Context, m transporte.Message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.timeout())
	defer cancel()
	endpoint, found, err := s.find(ctx, m)
	if err != nil {
		return "", &transporte.Error{Category: outbox.Network, Code: "credenciales_excepcion"}
	}
	if !found {
		return "", &transporte.Error{Category: outbox.Rejected, Code: "endpoint_inexistente"}
	}
	url, err := s.target(cmp.Or(endpoint.URL, m.Destination))
	if err != nil {
		return "", err
	}
	header, err := signed(m, endpoint.Secrets, time.Now())
	if err != nil {
		return "", err
	}
	answer, err := httpsend.Post(ctx, s.client, url, header, m.Data)
	if err != nil {
		return "", err
	}
	if answer.OK() {
		return m.ID, nil
	}
	if answer.Status == http.StatusGone && s.opts.Gone != nil {
		s.opts.Gone(ctx, m)
	}
	return "", fault(answer, endpoint.Permanent)
}

// fault is an answer that is no success.
func fault(answer httpsend.Answer, permanent []int) *transporte.Error {
	failed := answers.Error(answer, "", "")
	if slices.Contains(permanent, answer.Status) {
		return &transporte.Error{Category: outbox.Rejected, Code: failed.Code}
	}
	return failed
}
