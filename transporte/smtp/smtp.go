// Package smtp sends email through an SMTP server. Its Client.Send is the function that transporte.NewCorreo wants:
//
//	client, err := smtp.New("smtp.example.com:587", smtp.Options{Username: "...", Password: "..."})
//	if err != nil { ... }
//	defer client.Close()
//	correo, err := transporte.NewCorreo("Club <avisos@club.example>", render, client.Send)
//
// A message belongs to the server from its answer to the final dot: that answer alone says whether the message was sent,
// and nothing that happens to the connection later changes it. Without that answer nobody can know, so the failure is
// Uncertain and the next attempt may deliver a second copy: SMTP has no idempotency key. What helps is the Message-ID,
// which is made of the row's id and is the same on every attempt: some mailboxes drop or merge equal ones. A Resend
// server also takes a key in a header (Options.IdempotencyHeader).
//
// Every attempt sends the same bytes but for the line Date, which is the moment of the attempt: a row does not say when it
// was written, and a date hours in the past (its due time, after an outage) is a mark of spam.
//
// The message and the commands are those of go-mail, the conversation is not: its Client reports neither how far a failed
// message got nor, if the server says goodbye early, that it was delivered, and looks at its context only while it dials.
package smtp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/transporte"
)

// Client sends through one server as one account. It may be used by several goroutines at once.
type Client struct {
	server server
	opts   Options
	pool   *pool
}

// Format prints the server's address only, so that a log of the client holds no password.
func (c *Client) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "smtp.Client{%s}", c.server.addr) }

// New returns a Client for the server at addr, "host:port". It does not dial yet. An addr without a port, and options
// outside their bounds, give an error that wraps outbox.ErrInvalidOptions.
func New(addr string, opts Options) (*Client, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return nil, invalid("addr", "must be host:port, such as smtp.example.com:587")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	return &Client{
		server: server{addr: addr, host: host, opts: opts},
		opts:   opts,
		pool:   newPool(opts.maxConnections(), opts.idleTimeout()),
	}, nil
}

// Send sends e and returns its Message-ID, in angle brackets, followed by a space and the server's own id for the message
// if its answer shows one ("queued as 4XyZ").
//
// Every error is a *transporte.Error. A reply of the server is its code, such as "550 5.1.1", in the category that the
// table in replies.go gives it. Without one it is transient (red), with code conexion, dns, tls, tls_certificado,
// respuesta_invalida (that is not SMTP), sin_respuesta (the connection broke), timeout, cancelado, or sin_turno (none of
// MaxConnections was free in the first half of the time). Its Uncertain is set from the final dot on.
//
// A Token that fails is transient: red, credenciales_excepcion.
//
// Permanent without a reply are: credenciales with starttls_ausente (TLS is asked for, or there are credentials, and the
// server does not offer it), auth_ausente or auth_sin_mecanismo (it takes no login, or none that these options have), or
// clave_invalida (a token that is not printable ASCII);
// rechazado with remitente_invalido, destino_invalido, smtputf8_ausente (an address beyond ASCII left of the @, which this
// server cannot carry) or tamano_excedido (longer than the server says it takes).
//
// It returns as soon as ctx ends, with the connection closed. A connection that the server closed while it was idle is
// replaced once, unnoticed.
func (c *Client) Send(ctx context.Context, e transporte.Email) (string, error) {
	m, err := c.compose(e, time.Now())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.timeout())
	defer cancel()
	if err := c.pool.enter(ctx); err != nil {
		return "", err
	}
	defer c.pool.leave()
	if s := c.pool.take(); s != nil {
		id, err := c.deliver(ctx, s, m)
		if !stale(err) || ctx.Err() != nil {
			return id, outcome(ctx, err)
		}
	}
	s, err := c.server.connect(ctx)
	if err != nil {
		return "", outcome(ctx, err)
	}
	id, err := c.deliver(ctx, s, m)
	return id, outcome(ctx, err)
}

// deliver sends m over s, which is the pool's again afterwards, or gone.
func (c *Client) deliver(ctx context.Context, s *session, m message) (string, error) {
	queued, err := s.deliver(ctx, m)
	switch {
	case s.broken:
		s.hangUp()
	case s.messages >= c.opts.maxMessages():
		c.pool.retire(s)
	default:
		c.pool.put(s)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(m.id + " " + queued), nil
}

// Close closes the connections that nobody uses and waits until the servers have heard of it, 2 s at most. Those in use
// close when their message is through. Send still works, with one connection for each message.
func (c *Client) Close() error {
	c.pool.close()
	return nil
}
