package smtp

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail/smtp"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// logIn sends the credentials, if there are any. The connection is encrypted by then.
func (sv server) logIn(ctx context.Context, c *smtp.Client) error {
	if !sv.opts.hasCredentials() {
		return nil
	}
	offered, list := c.Extension("AUTH")
	if !offered {
		return &transporte.Error{Category: outbox.Credentials, Code: "auth_ausente"}
	}
	auth, err := sv.auth(ctx, strings.Fields(strings.ToUpper(list)))
	if err != nil {
		return err
	}
	if err := c.Auth(auth); err != nil {
		return failed(phaseAuth, err)
	}
	return nil
}

// auth makes the first of our mechanisms that the server offers.
func (sv server) auth(ctx context.Context, offered []string) (smtp.Auth, error) {
	o := sv.opts
	for _, mechanism := range o.mechanisms() {
		if !slices.Contains(offered, mechanism) {
			continue
		}
		switch mechanism {
		case "PLAIN":
			return smtp.PlainAuth("", o.Username, o.Password, sv.host, false), nil
		case "LOGIN":
			return smtp.LoginAuth(o.Username, o.Password, sv.host, false), nil
		case "SCRAM-SHA-256":
			return &scram{Auth: smtp.ScramSHA256Auth(o.Username, o.Password)}, nil
		case "XOAUTH2":
			return o.xoauth2(ctx)
		}
	}
	return nil, &transporte.Error{Category: outbox.Credentials, Code: "auth_sin_mecanismo"}
}

// mechanisms are those that the credentials are for. SCRAM is the last: servers offer it to all, and some accounts have a
// password that they keep in a form which it cannot use.
func (o Options) mechanisms() []string {
	switch {
	case o.Token != nil:
		return []string{"XOAUTH2"}
	case o.Auth == ScramSHA256:
		return []string{"SCRAM-SHA-256"}
	}
	return []string{"PLAIN", "LOGIN", "SCRAM-SHA-256"}
}

func (o Options) xoauth2(ctx context.Context) (smtp.Auth, error) {
	token, err := o.Token(ctx)
	if err != nil {
		return nil, &transporte.Error{Category: outbox.Network, Code: "credenciales_excepcion"}
	}
	if !httpsend.Printable(token) {
		return nil, &transporte.Error{Category: outbox.Credentials, Code: "clave_invalida"}
	}
	return smtp.XOAuth2Auth(o.Username, token), nil
}

var errUnproven = errors.New("the server does not prove that it knows the password")

// mostIterations bounds the work that a server can ask for; RFC 7677 has 4096.
const mostIterations = 1_000_000

// scram is go-mail's SCRAM, held to what it leaves open: how long the server can make it calculate, and that the login
// counts only once the server has proven that it knows the password.
type scram struct {
	smtp.Auth
	salted bool // the last challenge had the salt: only then does go-mail check a proof against the password
	proven bool
}

// Next is called by go-mail.
func (s *scram) Next(challenge []byte, more bool) ([]byte, error) {
	if !more {
		if !s.proven {
			return nil, errUnproven
		}
		return nil, nil
	}
	proof := bytes.HasPrefix(challenge, []byte("v="))
	if tooMuchWork(challenge) || proof && !s.salted {
		return nil, errUnproven
	}
	response, err := s.Auth.Next(challenge, true)
	if err != nil {
		return nil, errUnproven
	}
	s.salted, s.proven = bytes.HasPrefix(challenge, []byte("r=")), proof
	return response, nil
}

// tooMuchWork looks at the number of iterations in r=<nonce>,s=<salt>,i=<iterations>.
func tooMuchWork(challenge []byte) bool {
	for field := range bytes.SplitSeq(challenge, []byte(",")) {
		if count, ok := bytes.CutPrefix(field, []byte("i=")); ok {
			n, err := strconv.Atoi(string(count))
			return err != nil || n < 1 || n > mostIterations
		}
	}
	return false
}
