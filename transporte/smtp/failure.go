package smtp

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"net/textproto"

	"github.com/wneessen/go-mail/smtp"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// phase is how far a message got.
type phase string

const (
	phaseDial     phase = "dial"
	phaseGreeting phase = "greeting"
	phaseHello    phase = "EHLO"
	phaseTLS      phase = "TLS" // STARTTLS, the handshake, and EHLO again
	phaseAuth     phase = "AUTH"
	phaseMail     phase = "MAIL"
	phaseRcpt     phase = "RCPT"
	phaseData     phase = "DATA" // the command
	phaseBody     phase = "body" // without the final dot: the server drops what it has
	phaseEnd      phase = "end"  // the final dot and its reply
)

// failure is where a conversation broke off, and why: a *textproto.Error if the server said so.
type failure struct {
	phase phase
	cause error
}

// Error names no cause, which could be the server's text.
func (f *failure) Error() string { return "smtp: failed at " + string(f.phase) }

func failed(p phase, cause error) error { return &failure{p, cause} }

// reply returns what the server said, nil if the connection or ctx ended without.
func (f *failure) reply() *textproto.Error {
	var reply *textproto.Error
	if errors.As(f.cause, &reply) && reply.Code >= 400 && reply.Code <= 599 {
		return reply
	}
	return nil
}

// survives tells whether the connection can carry another message after err. A 421 announces its end.
func survives(err error) bool {
	var f *failure
	if !errors.As(err, &f) {
		return true // refused here
	}
	reply := f.reply()
	return reply != nil && reply.Code != 421
}

// stale tells whether err is what a connection looks like that the server closed while it was idle. Nothing was sent.
func stale(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.phase == phaseMail && !survives(err)
}

// outcome is err as Send returns it.
func outcome(ctx context.Context, err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if reply := f.reply(); reply != nil {
		return replies.failure(f.phase, reply.Code, reply.Msg)
	}
	return &transporte.Error{Category: outbox.Network, Code: f.code(ctx), Uncertain: f.phase == phaseEnd}
}

// code names a failure without a reply. What ended ctx is not asked: a cause of its own hides context.Canceled.
func (f *failure) code(ctx context.Context) string {
	var (
		timeout     net.Error
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "cancelado"
	case ctx.Err() != nil, errors.As(f.cause, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(f.cause, &dns):
		return "dns"
	case f.phase == phaseDial:
		return "conexion"
	case errors.As(f.cause, &certificate):
		return "tls_certificado"
	case f.phase == phaseTLS:
		return "tls"
	case f.notSMTP():
		return "respuesta_invalida"
	}
	return "sin_respuesta"
}

// notSMTP tells whether the server said something that is no reply.
func (f *failure) notSMTP() bool {
	var (
		protocol textproto.ProtocolError
		reply    *textproto.Error
		encoding base64.CorruptInputError
	)
	return errors.As(f.cause, &protocol) || errors.As(f.cause, &reply) || errors.As(f.cause, &encoding) ||
		errors.Is(f.cause, errTooMuch) || errors.Is(f.cause, errUnproven) ||
		errors.Is(f.cause, smtp.ErrUnexpectedServerChallange) || errors.Is(f.cause, smtp.ErrUnexpectedServerResponse)
}
