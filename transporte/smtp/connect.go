package smtp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/textproto"

	"github.com/wneessen/go-mail/smtp"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// server is where sessions go.
type server struct {
	addr, host string
	opts       Options
}

// connect dials, encrypts and logs in. Its errors are failures.
func (sv server) connect(ctx context.Context) (*session, error) {
	conn, err := sv.opts.dialContext()(ctx, "tcp", sv.addr)
	if err != nil {
		return nil, failed(phaseDial, err)
	}
	s := &session{wire: &wire{Conn: conn, left: maxReplies}}
	stop := context.AfterFunc(ctx, s.hangUp)
	err = sv.begin(ctx, s)
	if !stop() || err != nil {
		s.hangUp()
		return nil, cmp.Or(err, failed(phaseHello, context.Cause(ctx)))
	}
	return s, nil
}

func (sv server) begin(ctx context.Context, s *session) error {
	var conn net.Conn = s.wire
	if sv.opts.TLS == ImplicitTLS {
		encrypted := tls.Client(conn, sv.tlsConfig())
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return failed(phaseTLS, err)
		}
		conn = encrypted
	}
	var err error
	if s.client, err = smtp.NewClient(conn, sv.host); err != nil {
		return failed(phaseGreeting, err)
	}
	if err := sv.hello(s.client); err != nil {
		return failed(phaseHello, err)
	}
	if err := sv.startTLS(s.client); err != nil {
		return err
	}
	return sv.logIn(ctx, s.client)
}

// hello sends EHLO. Only a server that does not know the command may be spoken to in the old way (RFC 5321, 3.2): go-mail
// also says HELO after "451, come back later", and then the server seems to offer neither STARTTLS nor AUTH.
func (sv server) hello(c *smtp.Client) error {
	var first firstError
	c.ErrorHandlerRegistry.RegisterHandler(sv.host, "EHLO", &first)
	err := c.Hello(sv.opts.localName())
	var reply *textproto.Error
	if errors.As(first.err, &reply) && (reply.Code == 500 || reply.Code == 502) {
		return err
	}
	return cmp.Or(first.err, err)
}

// firstError keeps the first error of a command. It changes nothing.
type firstError struct{ err error }

// HandleError is called by go-mail.
func (f *firstError) HandleError(_, _ string, _ *textproto.Conn, err error) error {
	f.err = cmp.Or(f.err, err)
	return err
}

func (sv server) startTLS(c *smtp.Client) error {
	if sv.opts.TLS != StartTLS && sv.opts.TLS != StartTLSAlways {
		return nil
	}
	if offered, _ := c.Extension("STARTTLS"); !offered {
		if sv.opts.TLS == StartTLSAlways || sv.opts.hasCredentials() {
			return &transporte.Error{Category: outbox.Credentials, Code: "starttls_ausente"}
		}
		return nil
	}
	if err := c.StartTLS(sv.tlsConfig()); err != nil {
		return failed(phaseTLS, err)
	}
	return nil
}

func (sv server) tlsConfig() *tls.Config {
	config := sv.opts.TLSConfig.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = sv.host
	}
	return config
}
