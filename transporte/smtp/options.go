package smtp

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// TLS says when a connection is encrypted. Certificates are always checked, by Options.TLSConfig.
type TLS int

const (
	// StartTLS encrypts with STARTTLS if the server offers it, and sends no credentials if it does not. For port 587, and
	// for port 25 of a relay that trusts its network.
	StartTLS TLS = iota
	// StartTLSAlways sends nothing at all through a server that does not offer STARTTLS.
	StartTLSAlways
	// ImplicitTLS encrypts from the first byte. For port 465.
	ImplicitTLS
	// NoTLS never encrypts, and so takes no credentials. For a development server.
	NoTLS
)

// Auth says how a Client logs in with a password.
type Auth int

const (
	// AnyAuth uses what the server offers: PLAIN, LOGIN or else SCRAM-SHA-256.
	AnyAuth Auth = iota
	// ScramSHA256 uses SCRAM-SHA-256 (RFC 7677) and nothing else: the password stays here, and the server must prove that it
	// knows it.
	ScramSHA256
)

// Options are what a Client can do without.
type Options struct {
	// Username and Password log in. Both empty means that the server asks for none.
	Username, Password string
	// Auth is AnyAuth if zero.
	Auth Auth
	// Token gives an OAuth access token of Username's, in place of a Password, for AUTH XOAUTH2: Gmail, Exchange Online. It
	// is called for each new connection, by several goroutines at once, and must return soon after ctx ends. So it keeps a
	// token, and gets another some minutes before that one expires: a server that refuses one discards the message.
	// Its error is transient.
	Token func(ctx context.Context) (string, error)
	// TLS is StartTLS if zero.
	TLS TLS
	// TLSConfig is for a private certificate authority. Nil trusts the system's. ServerName is the server's name if empty.
	TLSConfig *tls.Config
	// MaxConnections is how many messages are sent at once, 1 to 100. Zero means 5, as many as a channel of the relay sends
	// at once by default. Further ones wait, half of their time at most.
	MaxConnections int
	// IdleTimeout is how long a connection is kept for the next message, at least 1 ms. Zero means 30 s; servers hang up
	// after some minutes.
	IdleTimeout time.Duration
	// MaxMessages is how many messages a connection carries at most, at least 1. Zero means 100; some servers refuse more.
	MaxMessages int
	// Timeout bounds one Send, at least 1 ms. Zero means 1 min. The context of Send may end it sooner.
	Timeout time.Duration
	// LocalName is what the client calls itself in EHLO. Empty means the host's name.
	LocalName string
	// MessageIDDomain is what stands right of the @ in a Message-ID. Empty means the domain of the sender's address.
	MessageIDDomain string
	// IdempotencyHeader is a header for the idempotency key, such as Resend-Idempotency-Key for smtp.resend.com. Empty
	// means none. A key with spaces or beyond ASCII, or longer than 256 characters, is sent as its SHA-256.
	IdempotencyHeader string
	// DialContext makes the TCP connection. Nil means a net.Dialer's.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Format prints the user's name only, so that a log of the options holds no password.
func (o Options) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "smtp.Options{Username:%s}", o.Username) }

func (o Options) maxConnections() int        { return cmp.Or(o.MaxConnections, 5) }
func (o Options) idleTimeout() time.Duration { return cmp.Or(o.IdleTimeout, 30*time.Second) }
func (o Options) maxMessages() int           { return cmp.Or(o.MaxMessages, 100) }
func (o Options) timeout() time.Duration     { return cmp.Or(o.Timeout, time.Minute) }
func (o Options) hasCredentials() bool       { return o.Username != "" || o.Password != "" || o.Token != nil }

func (o Options) localName() string {
	if o.LocalName != "" {
		return o.LocalName
	}
	if name, err := os.Hostname(); err == nil && isWord(name) {
		return name
	}
	return "localhost"
}

func (o Options) dialContext() func(context.Context, string, string) (net.Conn, error) {
	if o.DialContext != nil {
		return o.DialContext
	}
	return new(net.Dialer).DialContext
}

func (o Options) check() error {
	switch {
	case o.TLS < StartTLS || o.TLS > NoTLS:
		return invalid("TLS", "must be StartTLS, StartTLSAlways, ImplicitTLS or NoTLS")
	case o.TLS == NoTLS && o.hasCredentials():
		return invalid("TLS", "must encrypt when there is a log-in, which would travel in the clear: choose another mode, or give no username and password")
	case o.Auth < AnyAuth || o.Auth > ScramSHA256:
		return invalid("Auth", "must be AnyAuth or ScramSHA256")
	case o.Token != nil && (o.Username == "" || o.Password != "" || o.Auth != AnyAuth):
		return invalid("Token", "must come with a Username, and without Password and Auth")
	case o.Token == nil && o.Username == "" && o.Password != "":
		return invalid("Username", "must be given too when there is a password")
	case o.Token == nil && o.Username != "" && o.Password == "":
		return invalid("Password", "must be given too when there is a username")
	case strings.ContainsFunc(o.Username, unicode.IsControl):
		return invalid("Username", "must not contain control characters, such as a line break at the end")
	case strings.ContainsFunc(o.Password, unicode.IsControl):
		return invalid("Password", "must not contain control characters, such as a line break at the end")
	case o.maxConnections() < 1 || o.maxConnections() > 100:
		return invalid("MaxConnections", "must be 1 to 100")
	case o.idleTimeout() < time.Millisecond:
		return invalid("IdleTimeout", "must be at least 1 ms")
	case o.maxMessages() < 1:
		return invalid("MaxMessages", "must be at least 1")
	case o.timeout() < time.Millisecond:
		return invalid("Timeout", "must be at least 1 ms")
	case o.LocalName != "" && !isWord(o.LocalName):
		return invalid("LocalName", "must be a host's name, such as relay.club.example")
	case o.MessageIDDomain != "" && !isDotAtom(o.MessageIDDomain):
		return invalid("MessageIDDomain", "must be a domain, such as club.example")
	case o.IdempotencyHeader != "" && (!isDotAtom(o.IdempotencyHeader) || len(o.IdempotencyHeader) > 64):
		return invalid("IdempotencyHeader", "must be a header's name, such as Resend-Idempotency-Key")
	}
	return nil
}

func invalid(field, reason string) error {
	return &outbox.OptionError{Field: "smtp.New: " + field, Reason: reason}
}
