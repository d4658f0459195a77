package smtp

import (
	"context"
	"errors"
	"net"
	"net/textproto"
	"strconv"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// session is one connection, ready for a message.
type session struct {
	wire     *wire
	client   *smtp.Client
	messages int  // sent or refused
	broken   bool // no command may follow
}

// deliver sends m and returns the server's id for it, empty if it names none. It leaves s ready for the next message, or
// broken. Its errors are failures.
func (s *session) deliver(ctx context.Context, m message) (queued string, err error) {
	s.wire.left = maxReplies
	s.messages++
	stop := context.AfterFunc(ctx, s.hangUp)
	defer func() {
		if !stop() {
			s.broken = true
		}
	}()
	if err := s.fits(m); err != nil {
		return "", err
	}
	reply, err := s.converse(m)
	if s.client.Text.R.Buffered() > 0 { // more than was asked for: it would be taken for the next command's reply
		s.broken = true
	}
	if err == nil {
		return queueID(reply), nil
	}
	// After a refusal the server still holds sender and recipient (RFC 5321, 4.1.1.5). A RSET that fails costs the
	// connection, and says nothing about the message.
	if s.broken = s.broken || !survives(err); !s.broken && s.client.Reset() != nil {
		s.broken = true
	}
	return "", err
}

// fits tells early what the server would refuse.
func (s *session) fits(m message) error {
	if offered, _ := s.client.Extension("SMTPUTF8"); m.unicode && !offered {
		return &transporte.Error{Category: outbox.Rejected, Code: "smtputf8_ausente"}
	}
	_, size := s.client.Extension("SIZE")
	if limit, err := strconv.Atoi(size); err == nil && limit > 0 && len(m.body) > limit {
		return &transporte.Error{Category: outbox.Rejected, Code: "tamano_excedido"}
	}
	return nil
}

// converse returns the text of the answer to the final dot.
func (s *session) converse(m message) (reply string, err error) {
	s.client.SkipSMTPUTF8(!m.unicode) // else the next server on the way must know it too
	if err := accepted(s.client.Mail(m.from)); err != nil {
		return "", failed(phaseMail, err)
	}
	if err := accepted(s.client.Rcpt(m.to)); err != nil {
		return "", failed(phaseRcpt, err)
	}
	w, err := s.client.Data()
	if err != nil {
		return "", failed(phaseData, err)
	}
	if _, err := w.Write(m.body); err != nil {
		return "", failed(phaseBody, err)
	}
	err = accepted(w.Close())
	if err != nil {
		return "", failed(phaseEnd, err)
	}
	if closer, ok := w.(*smtp.DataCloser); ok {
		reply = closer.ServerResponse()
	}
	return reply, nil
}

// accepted returns nil if err is a reply of success that go-mail did not expect, such as 251 or 200: the first digit
// decides (RFC 5321, 4.3.2).
func accepted(err error) error {
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code >= 200 && reply.Code <= 299 {
		return nil
	}
	return err
}

// quit says goodbye and closes.
func (s *session) quit() {
	defer s.hangUp()
	s.wire.left = maxReplies
	if s.wire.SetDeadline(time.Now().Add(2*time.Second)) == nil {
		_ = s.client.Quit()
	}
}

// hangUp closes without a word. Never QUIT within DATA: go-mail would end the text with a dot before it, and the server
// would deliver what it has.
func (s *session) hangUp() { _ = s.wire.Close() }

// maxReplies bounds what a server can say before, or during, one message. It includes the handshake of TLS.
const maxReplies = 1 << 20

var errTooMuch = errors.New("the server says too much")

// wire is a connection that stops to read when the server says too much: go-mail would keep it all.
type wire struct {
	net.Conn
	left int
}

func (w *wire) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, errTooMuch
	}
	n, err := w.Conn.Read(p[:min(len(p), w.left)])
	w.left -= n
	return n, err
}
