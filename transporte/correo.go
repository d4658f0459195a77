package transporte

import (
	"context"
	"fmt"
	"net/mail"
	"strings"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Rendered is what a message says as an email. Subject is one line and not blank; of HTML and Text one may be blank.
type Rendered struct {
	Subject string
	HTML    string
	Text    string
}

// Email is one email as a provider's function gets it: checked, and the same on every attempt if it renders the same.
type Email struct {
	From    string // as given to NewCorreo
	To      string // one address, perhaps with a name: "Ana <ana@club.example>"
	Subject string
	HTML    string // empty if there is only Text
	Text    string // empty if there is only HTML
	// RowID is the row's UUID: the same on every attempt, and what a Message-ID can be made of.
	RowID string
	// IdempotencyKey is "tenant:key", the same on every attempt. It may hold any character and be longer than a provider
	// takes: hash it then, never cut it.
	IdempotencyKey string
}

// Correo is a Sender for email: it renders a message and hands the email to a provider's function. It may be used by
// several goroutines at once if its functions may.
type Correo struct {
	from   string
	render func(Message) (Rendered, error)
	send   func(context.Context, Email) (string, error)
}

// NewCorreo returns a Correo that sends as from, one address, perhaps with a name: "Club <avisos@club.example>".
//
// The function render turns a message into subject and body, usually with one template for each m.Template. It must make
// the same email of the same message on every attempt, so it uses neither clock nor chance: a provider that sees a known
// idempotency key with another body refuses it. Its error or panic discards the message, and nobody sees the text of
// either; a render that should be heard logs for itself.
//
// The function send delivers the email and returns the provider's id, under the same contract as Sender.Send. The
// provider packages have one ready.
//
// A from that is not an address, and a nil function, give an error that wraps outbox.ErrInvalidOptions.
func NewCorreo(
	from string,
	render func(m Message) (Rendered, error),
	send func(ctx context.Context, e Email) (externalID string, err error),
) (*Correo, error) {
	switch {
	case !validAddress(from):
		return nil, &outbox.OptionError{Field: "NewCorreo: from", Reason: "must be one address, such as avisos@club.example or " +
			`"Club, Social" <avisos@club.example> (a name with a comma or a colon in double quotes)`}
	case render == nil:
		return nil, fmt.Errorf("%w: NewCorreo: render must not be nil", outbox.ErrInvalidOptions)
	case send == nil:
		return nil, fmt.Errorf("%w: NewCorreo: send must not be nil", outbox.ErrInvalidOptions)
	}
	return &Correo{from, render, send}, nil
}

// Send renders m and sends it to the address in m.Destination; blanks around the address do not matter.
//
// These failures are permanent and come before the provider's function is called: category plantilla, code render, if m
// does not render; category rechazado with code destino_vacio, destino_invalido (not one address), asunto_vacio,
// asunto_invalido (a line break or a NUL, also at its end) or cuerpo_vacio (neither HTML nor text). Whatever the
// provider's function returns is returned as it is.
func (c *Correo) Send(ctx context.Context, m Message) (string, error) {
	to := strings.TrimSpace(m.Destination)
	if to == "" {
		return "", &Error{Category: outbox.Rejected, Code: "destino_vacio"}
	}
	if !validAddress(to) {
		return "", &Error{Category: outbox.Rejected, Code: "destino_invalido"}
	}
	r, err := render(c.render, m)
	if err != nil {
		return "", err
	}
	if err := r.check(); err != nil {
		return "", err
	}
	return c.send(ctx, Email{
		From: c.from, To: to, Subject: r.Subject, HTML: r.HTML, Text: r.Text,
		RowID: m.ID, IdempotencyKey: m.IdempotencyKey,
	})
}

func (r Rendered) check() error {
	switch {
	case strings.TrimSpace(r.Subject) == "":
		return &Error{Category: outbox.Rejected, Code: "asunto_vacio"}
	case breaksHeader(r.Subject):
		return &Error{Category: outbox.Rejected, Code: "asunto_invalido"}
	case strings.TrimSpace(r.HTML) == "" && strings.TrimSpace(r.Text) == "":
		return &Error{Category: outbox.Rejected, Code: "cuerpo_vacio"}
	}
	return nil
}

// validAddress tells whether s is one address of RFC 5322, with or without a name. Whether the mailbox exists is for the
// provider to say.
func validAddress(s string) bool {
	_, err := mail.ParseAddress(s)
	return err == nil && !breaksHeader(s) // the parser allows a line break within a comment
}

// breaksHeader tells whether s would end a header line early, and so smuggle in headers of its own.
func breaksHeader(s string) bool { return strings.ContainsAny(s, "\r\n\x00") }
