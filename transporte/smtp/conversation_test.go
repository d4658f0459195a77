package smtp_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

func TestSendSpeaksInTheOrderOfTheProtocolAndReturnsBothIDs(t *testing.T) {
	t.Parallel()
	s := start(t, &server{offers: []string{"8BITMIME", "SMTPUTF8", "SIZE 1000000"}})
	c := newClient(t, s, smtp.Options{LocalName: "relay.club.example"})
	id, err := c.Send(t.Context(), reminder)
	if want := "<" + rowID + "@club.example> QUEUE-1"; err != nil || id != want {
		t.Errorf("got %q, %v, want %q", id, err, want)
	}
	want := []string{
		"1 EHLO relay.club.example",
		"1 MAIL FROM:<avisos@club.example> BODY=8BITMIME", // no SMTPUTF8: these addresses do without
		"1 RCPT TO:<ana@destino.example>",
		"1 DATA",
	}
	if got := s.said(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCorreoSendsThroughTheClient(t *testing.T) {
	t.Parallel()
	s := start(t, &server{})
	render := func(transporte.Message) (transporte.Rendered, error) {
		return transporte.Rendered{Subject: "Hola", Text: "Hola, Ana"}, nil
	}
	correo, err := transporte.NewCorreo("Club <avisos@club.example>", render, newClient(t, s, smtp.Options{}).Send)
	if err != nil {
		t.Fatal(err)
	}
	id, err := correo.Send(t.Context(), transporte.Message{ID: rowID, Destination: "ana@destino.example"})
	if err != nil || !strings.HasPrefix(id, "<"+rowID+"@club.example>") {
		t.Errorf("got %q, %v, want the row's Message-ID", id, err)
	}
}

func TestCredentialsTravelOnlyUnderTLS(t *testing.T) {
	t.Parallel()
	plain := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00club\x00hunter2"))
	login := []string{"AUTH LOGIN", base64.StdEncoding.EncodeToString([]byte("club")),
		base64.StdEncoding.EncodeToString([]byte("hunter2"))}
	tests := []struct {
		name           string
		tls            smtp.TLS
		implicit       bool
		offers, secure []string
		said           []string // without EHLO
	}{
		{"STARTTLS and PLAIN", smtp.StartTLS, false, []string{"STARTTLS"}, []string{"AUTH LOGIN PLAIN"}, []string{"STARTTLS", plain}},
		{"STARTTLS and LOGIN", smtp.StartTLSAlways, false, []string{"STARTTLS"}, []string{"AUTH CRAM-MD5 LOGIN"}, append([]string{"STARTTLS"}, login...)},
		{"implicit TLS", smtp.ImplicitTLS, true, []string{"AUTH PLAIN"}, nil, []string{plain}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, &server{tls: testAuthority().server, implicit: test.implicit, offers: test.offers, secure: test.secure})
			c := newClient(t, s, smtp.Options{
				Username: "club", Password: "hunter2", TLS: test.tls, TLSConfig: testAuthority().trusted,
			})
			if id, err := c.Send(t.Context(), reminder); err != nil {
				t.Fatalf("got %q, %v, want the email sent", id, err)
			}
			var said []string
			for _, line := range s.said() {
				if line = strings.TrimPrefix(line, "1 "); !strings.HasPrefix(line, "EHLO") {
					said = append(said, line)
				}
			}
			if len(said) < 3 || !slices.Equal(said[:len(said)-3], test.said) {
				t.Errorf("got %q, want %q and then the message", said, test.said)
			}
		})
	}
}

func TestNoCredentialsGoToAServerWithoutTLSOrWithoutOurLogin(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		tls            smtp.TLS
		user           string
		offers, secure []string
		code           string
	}{
		{"credentials", smtp.StartTLS, "club", []string{"AUTH PLAIN"}, nil, "starttls_ausente"},
		{"TLS always", smtp.StartTLSAlways, "", nil, nil, "starttls_ausente"},
		{"no AUTH", smtp.StartTLS, "club", []string{"STARTTLS"}, nil, "auth_ausente"},
		{"only CRAM-MD5", smtp.StartTLS, "club", []string{"STARTTLS"}, []string{"AUTH CRAM-MD5"}, "auth_sin_mecanismo"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, &server{tls: testAuthority().server, offers: test.offers, secure: test.secure})
			failed := failure(t, t.Context(), newClient(t, s, smtp.Options{
				Username: test.user, Password: test.user, TLS: test.tls, TLSConfig: testAuthority().trusted,
			}))
			checkFailure(t, failed, outbox.Credentials, test.code, false)
			for _, line := range s.said() {
				if !strings.Contains(line, "EHLO") && !strings.Contains(line, "STARTTLS") {
					t.Errorf("the client went on: %q", line)
				}
			}
		})
	}
}

func TestWithoutCredentialsTLSIsUsedWhereItIsOffered(t *testing.T) {
	t.Parallel()
	for _, offers := range [][]string{nil, {"STARTTLS"}} {
		s := start(t, &server{tls: testAuthority().server, offers: offers})
		c := newClient(t, s, smtp.Options{TLSConfig: testAuthority().trusted})
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Errorf("a server that offers %q: got %v, want the email sent", offers, err)
		}
		if used := slices.Contains(s.said(), "1 STARTTLS"); used != (offers != nil) {
			t.Errorf("a server that offers %q: STARTTLS used: %v", offers, used)
		}
	}
}

func TestAnUnknownCertificateIsTransient(t *testing.T) {
	t.Parallel()
	for _, opts := range []smtp.Options{
		{Username: "club", Password: "hunter2"},
		{TLS: smtp.ImplicitTLS},
		{TLS: smtp.StartTLS, TLSConfig: &tls.Config{RootCAs: testAuthority().trusted.RootCAs, ServerName: "other.example"}},
	} {
		s := start(t, &server{tls: testAuthority().server, offers: []string{"STARTTLS"}, implicit: opts.TLS == smtp.ImplicitTLS})
		checkFailure(t, failure(t, t.Context(), newClient(t, s, opts)), outbox.Network, "tls_certificado", false)
		if said := s.said(); slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, "AUTH") }) {
			t.Errorf("the credentials went to a server that nobody vouches for: %q", said)
		}
	}
}

// A server that refuses EHLO for the moment must not be taken for one that offers no STARTTLS: that would discard.
func TestOnlyAServerThatDoesNotKnowEHLOIsSpokenToInTheOldWay(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"451 4.3.0 later", "421 4.3.2 closing"} {
		s := start(t, replying("EHLO", reply)) // says 250 to HELO
		opts := smtp.Options{Username: "club", Password: "hunter2"}
		checkFailure(t, failure(t, t.Context(), newClient(t, s, opts)), outbox.Network, reply[:9], false)
	}
	s := start(t, replying("EHLO", "502 5.5.1 what"))
	if id, err := newClient(t, s, smtp.Options{}).Send(t.Context(), reminder); err != nil {
		t.Errorf("got %q, %v, want the email sent after HELO", id, err)
	}
}

func TestAnyReplyOfSuccessIsSuccess(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"MAIL", "RCPT", "end"} {
		s := start(t, replying(step, "252 2.5.2 will do"))
		if id, err := newClient(t, s, smtp.Options{}).Send(t.Context(), reminder); err != nil {
			t.Errorf("252 at %s: got %q, %v, want the email sent", step, id, err)
		}
	}
}

// The server's answer to the final dot decides; what happens to the connection after it does not.
func TestADeliveredEmailIsSentWhateverBecomesOfTheConnection(t *testing.T) {
	t.Parallel()
	s := start(t, &server{last: "end"})
	c := newClient(t, s, smtp.Options{})
	for n := range 3 {
		if id, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatalf("email %d: got %q, %v, want it sent", n, id, err)
		}
	}
	if opened, _, messages := s.counts(); opened != 3 || messages != 3 {
		t.Errorf("got %d messages over %d connections, want 3 over 3", messages, opened)
	}
}

func TestAClosedConnectionAtRSETCostsTheConnectionAndNotTheNextEmail(t *testing.T) {
	t.Parallel()
	for _, at := range []string{drop, reset, "421 4.3.2 bye", "500 what"} {
		s := start(t, &server{answer: func(n int, step string) string {
			switch {
			case n == 1 && step == "RCPT":
				return "550 5.1.1 unknown"
			case step == "RSET":
				return at
			}
			return ""
		}})
		c := newClient(t, s, smtp.Options{})
		checkFailure(t, failure(t, t.Context(), c), outbox.Rejected, "550 5.1.1", false)
		if id, err := c.Send(t.Context(), reminder); err != nil {
			t.Errorf("RSET answered with %q: got %q, %v for the next email, want it sent", at, id, err)
		}
		if opened, _, _ := s.counts(); opened != 2 {
			t.Errorf("RSET answered with %q: got %d connections, want a second one", at, opened)
		}
	}
}

func TestARefusedEmailLeavesTheConnectionUsable(t *testing.T) {
	t.Parallel()
	refused := false
	s := start(t, &server{answer: func(_ int, step string) string {
		if step == "RCPT" && !refused {
			refused = true
			return "550 5.1.1 unknown"
		}
		return ""
	}})
	c := newClient(t, s, smtp.Options{})
	checkFailure(t, failure(t, t.Context(), c), outbox.Rejected, "550 5.1.1", false)
	if id, err := c.Send(t.Context(), reminder); err != nil {
		t.Fatalf("got %q, %v, want the next email sent", id, err)
	}
	if opened, _, _ := s.counts(); opened != 1 || !slices.Contains(s.said(), "1 RSET") {
		t.Errorf("got %d connections, %q, want one with RSET between", opened, s.said())
	}
}

func TestWhatTheServerCannotTakeIsRefusedBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	unicode, big := reminder, reminder
	unicode.To = "josé@destino.example"
	big.Text = strings.Repeat("x", 2000)
	for code, e := range map[string]transporte.Email{"smtputf8_ausente": unicode, "tamano_excedido": big} {
		s := start(t, &server{offers: []string{"SIZE 2000"}})
		c := newClient(t, s, smtp.Options{})
		id, err := c.Send(t.Context(), e)
		checkFailure(t, asFailure(t, id, err), outbox.Rejected, code, false)
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Errorf("%s: got %v for the next email, want it sent", code, err)
		}
		if opened, _, messages := s.counts(); opened != 1 || messages != 1 {
			t.Errorf("%s: got %d messages over %d connections, want 1 over 1", code, messages, opened)
		}
	}
	s := start(t, &server{offers: []string{"SMTPUTF8", "SIZE 0"}})
	if _, err := newClient(t, s, smtp.Options{}).Send(t.Context(), unicode); err != nil {
		t.Errorf("got %v, want the email sent by a server that takes such addresses", err)
	}
	if want := "1 MAIL FROM:<avisos@club.example> SMTPUTF8"; !slices.Contains(s.said(), want) {
		t.Errorf("got %q, want %q", s.said(), want)
	}
}

func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	const addr = "smtp.club.example:587"
	tests := []struct {
		addr  string
		opts  smtp.Options
		names string
	}{
		{"smtp.club.example", smtp.Options{}, "addr"},
		{":587", smtp.Options{}, "addr"},
		{addr, smtp.Options{TLS: 9}, "TLS"},
		{addr, smtp.Options{TLS: smtp.NoTLS, Username: "a", Password: "b"}, "TLS"},
		{addr, smtp.Options{Username: "a"}, "Password"},
		{addr, smtp.Options{Password: "a"}, "Username"},
		{addr, smtp.Options{Username: "a\x00", Password: "b"}, "Username"},
		{addr, smtp.Options{Username: "a", Password: "b\n"}, "Password"},
		{addr, smtp.Options{Username: "a", Password: "b", Auth: 2}, "Auth"},
		{addr, smtp.Options{TLS: smtp.NoTLS, Username: "a", Token: token("b", nil)}, "TLS"},
		{addr, smtp.Options{Token: token("b", nil)}, "Token"},
		{addr, smtp.Options{Username: "a", Password: "b", Token: token("b", nil)}, "Token"},
		{addr, smtp.Options{Username: "a", Auth: smtp.ScramSHA256, Token: token("b", nil)}, "Token"},
		{addr, smtp.Options{MaxConnections: -1}, "MaxConnections"},
		{addr, smtp.Options{MaxConnections: 101}, "MaxConnections"},
		{addr, smtp.Options{IdleTimeout: -1}, "IdleTimeout"},
		{addr, smtp.Options{MaxMessages: -1}, "MaxMessages"},
		{addr, smtp.Options{Timeout: -1}, "Timeout"},
		{addr, smtp.Options{LocalName: "relay\r\nMAIL"}, "LocalName"},
		{addr, smtp.Options{MessageIDDomain: "club.example>"}, "MessageIDDomain"},
		{addr, smtp.Options{IdempotencyHeader: "Key:"}, "IdempotencyHeader"},
	}
	for _, test := range tests {
		c, err := smtp.New(test.addr, test.opts)
		if c != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "smtp.New: "+test.names) {
			t.Errorf("%s %+v: got %v, %v, want ErrInvalidOptions that names %s", test.addr, test.opts, c, err, test.names)
		}
	}
}

func TestNothingPrintsThePassword(t *testing.T) {
	t.Parallel()
	opts := smtp.Options{Username: "club", Password: "hunter2"}
	c, err := smtp.New("smtp.club.example:587", opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{opts, &opts, c, []any{c}, struct{ C *smtp.Client }{c}} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "hunter2") || strings.Contains(got, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s of %T prints %s", verb, value, got)
			}
		}
	}
}

func TestAServerThatIsNotThereIsTransientAndNotUncertain(t *testing.T) {
	t.Parallel()
	nameless := &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}}
	for addr, code := range map[string]string{sendertest.Refusing(t): "conexion", "smtp.club.example:587": "dns"} {
		c, err := smtp.New(addr, smtp.Options{DialContext: nameless.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		checkFailure(t, failure(t, t.Context(), c), outbox.Network, code, false)
	}
}
