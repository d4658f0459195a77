package smtp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/idna"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// longestKey is what Resend takes.
const longestKey = 256

// message is an email as it goes over the wire.
type message struct {
	id       string // Message-ID, in angle brackets
	from, to string // in angle brackets, for MAIL and RCPT
	unicode  bool   // an address can only travel with SMTPUTF8
	body     []byte // headers and text
}

// compose writes e. The same e gives the same bytes, but for the line Date.
func (c *Client) compose(e transporte.Email, now time.Time) (message, error) {
	from, ok := address(e.From)
	if !ok {
		return message{}, &transporte.Error{Category: outbox.Rejected, Code: "remitente_invalido"}
	}
	to, ok := address(e.To)
	if !ok {
		return message{}, &transporte.Error{Category: outbox.Rejected, Code: "destino_invalido"}
	}
	id := c.messageID(e.RowID, from.Address)
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary(boundary(e)))
	m.FromMailAddress(from)
	m.ToMailAddress(to)
	m.Subject(e.Subject)
	m.SetDateWithValue(now)
	m.SetMessageIDWithValue(id)
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834, 5: no holiday notices
	m.SetGenHeader("X-Entity-Ref-ID", word(e.RowID))   // Gmail would fold messages with one subject into one
	if c.opts.IdempotencyHeader != "" && e.IdempotencyKey != "" {
		m.SetGenHeader(gomail.Header(c.opts.IdempotencyHeader), headerKey(e.IdempotencyKey))
	}
	setBody(m, e)
	var body bytes.Buffer
	if _, err := m.WriteTo(&body); err != nil {
		return message{}, &transporte.Error{Category: outbox.TemplateFault, Code: "render"}
	}
	return message{
		id: "<" + id + ">", from: path(from), to: path(to),
		unicode: !isASCII(from.Address + to.Address), body: body.Bytes(),
	}, nil
}

func setBody(m *gomail.Msg, e transporte.Email) {
	switch {
	case e.HTML == "":
		m.SetBodyString(gomail.TypeTextPlain, e.Text)
	case e.Text == "":
		m.SetBodyString(gomail.TypeTextHTML, e.HTML)
	default: // the best last (RFC 2046, 5.1.4)
		m.SetBodyString(gomail.TypeTextPlain, e.Text)
		m.AddAlternativeString(gomail.TypeTextHTML, e.HTML)
	}
}

func (c *Client) messageID(rowID, from string) string {
	domain := c.opts.MessageIDDomain
	if domain == "" {
		domain = from[strings.LastIndexByte(from, '@')+1:]
	}
	return word(rowID) + "@" + domain
}

// boundary is the same on every attempt, and cannot stand in a body: that would change it. It is made of letters and
// digits, because go-mail writes it without quotes.
func boundary(e transporte.Email) string {
	sum := sha256.Sum256([]byte(e.RowID + "\x00" + e.Text + "\x00" + e.HTML))
	return hex.EncodeToString(sum[:24])
}

// address reads s and writes its domain in ASCII (RFC 5891), as every server takes it.
func address(s string) (*mail.Address, bool) {
	a, err := mail.ParseAddress(s)
	if err != nil || strings.ContainsAny(s, "\r\n\x00") {
		return nil, false
	}
	at := strings.LastIndexByte(a.Address, '@')
	if domain := a.Address[at+1:]; !isASCII(domain) {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return nil, false
		}
		a.Address = a.Address[:at+1] + ascii
	}
	return a, true
}

// path is a without its name, in angle brackets and quoted where it must be.
func path(a *mail.Address) string { return (&mail.Address{Address: a.Address}).String() }

// headerKey is key as it arrives in a header: a space could become a line break on the way.
func headerKey(key string) string {
	if strings.Contains(key, " ") {
		return httpsend.FitKey(key, 0)
	}
	return httpsend.FitKey(key, longestKey)
}

// word is s if a Message-ID can hold it, and its hash if it cannot.
func word(s string) string {
	if isDotAtom(s) && len(s) <= 64 {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// isDotAtom tells whether s is made of letters, digits, hyphens and underscores, in parts with a full stop between.
func isDotAtom(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		}) {
			return false
		}
	}
	return true
}

// isWord tells whether s is printable ASCII without a space, so that it can be an argument of a command.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
