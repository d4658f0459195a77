package smtp_test

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

// scramServer is the server's side of SCRAM-SHA-256, by RFC 5802, 3 and 5.
type scramServer struct {
	password string
	// iterations is i=. Empty means 4096.
	iterations string
	// challenged are the challenges of a server that cheats.
	challenged []string
	// refused is what the last challenge is if the client's proof is wrong.
	refused string
}

func (s scramServer) challenges() (all []func(string) string) {
	if s.challenged != nil {
		for _, challenge := range s.challenged {
			all = append(all, constant(challenge))
		}
		return all
	}
	const salt = "a salt of sixteen"
	var bare, first string
	iterations := s.iterations
	if iterations == "" {
		iterations = "4096"
	}
	return []func(string) string{
		constant(""),
		func(answer string) string {
			bare = strings.TrimPrefix(answer, "n,,")
			_, nonce, _ := strings.Cut(bare, ",r=")
			first = "r=" + nonce + "SERVER,s=" + base64.StdEncoding.EncodeToString([]byte(salt)) + ",i=" + iterations
			return first
		},
		func(answer string) string { return s.prove(bare, first, answer, salt) },
	}
}

// prove checks the client's proof and gives the server's.
func (s scramServer) prove(bare, first, final, salt string) string {
	without, proof, _ := strings.Cut(final, ",p=")
	salted, err := pbkdf2.Key(sha256.New, s.password, []byte(salt), 4096, sha256.Size)
	if err != nil {
		panic(err)
	}
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	message := bare + "," + first + "," + without
	clientKey := mac(salted, "Client Key")
	stored := sha256.Sum256(clientKey)
	want := mac(stored[:], message)
	for i := range want {
		want[i] ^= clientKey[i]
	}
	if proof != base64.StdEncoding.EncodeToString(want) {
		return s.refused
	}
	return "v=" + base64.StdEncoding.EncodeToString(mac(mac(salted, "Server Key"), message))
}

// withLogin is a server that wants a login by one of these mechanisms.
func withLogin(mechanisms string) *server {
	return &server{tls: testAuthority().server, offers: []string{"STARTTLS"}, secure: []string{"AUTH " + mechanisms}}
}

func token(value string, err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, err }
}

// logins are the AUTH commands that a server got, without their arguments.
func logins(s *server) (all []string) {
	for _, line := range s.said() {
		if _, arguments, ok := strings.Cut(line, " AUTH "); ok {
			mechanism, _, _ := strings.Cut(arguments, " ")
			all = append(all, mechanism)
		}
	}
	return all
}

func TestThePasswordNeverLeavesWithSCRAM(t *testing.T) {
	t.Parallel()
	for name, auth := range map[string]smtp.Auth{"PLAIN LOGIN SCRAM-SHA-256": smtp.ScramSHA256, "CRAM-MD5 SCRAM-SHA-256": smtp.AnyAuth} {
		s := withLogin(name)
		s.scram.password = "hunter2"
		c := newClient(t, start(t, s), smtp.Options{Username: "club", Password: "hunter2", Auth: auth, TLSConfig: testAuthority().trusted})
		if id, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatalf("%s: got %q, %v, want the email sent", name, id, err)
		}
		if got := logins(s); len(got) != 1 || got[0] != "SCRAM-SHA-256" {
			t.Errorf("%s: got logins %q, want SCRAM-SHA-256", name, got)
		}
		for _, line := range s.said() {
			decoded, _ := base64.StdEncoding.DecodeString(line[strings.LastIndexByte(line, ' ')+1:])
			if strings.Contains(line+string(decoded), "hunter2") {
				t.Errorf("%s: the client said %q", name, line)
			}
		}
	}
}

func TestALoginBySCRAMCountsOnlyOnceTheServerHasProvenItself(t *testing.T) {
	t.Parallel()
	// What a proof would be without a password: go-mail has none before the salt, and takes it for right.
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	forged := "v=" + base64.StdEncoding.EncodeToString(mac(mac(nil, "Server Key"), ""))
	tests := map[string]scramServer{
		"another password":        {password: "hunter3", refused: "v=AAAA"},
		"no proof":                {challenged: []string{""}},
		"a proof of nothing":      {challenged: []string{forged}},
		"no challenge":            {challenged: []string{}},
		"a nonce of its own":      {challenged: []string{"", "r=SERVER,s=AAAA,i=4096"}},
		"not a challenge":         {challenged: []string{"", "what"}},
		"work without an end":     {iterations: "2000000000"},
		"work that is no number":  {iterations: "1e3"},
		"less than no work":       {iterations: "-1"},
		"two lines in the answer": {challenged: []string{"", "r=a\r\nb,s=AAAA,i=1"}},
	}
	for name, with := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withLogin("SCRAM-SHA-256")
			s.scram = with
			c := newClient(t, start(t, s), smtp.Options{Username: "club", Password: "hunter2", TLSConfig: testAuthority().trusted})
			checkFailure(t, failure(t, t.Context(), c), outbox.Network, "respuesta_invalida", false)
			if _, _, messages := s.counts(); messages != 0 {
				t.Errorf("got %d messages, want none", messages)
			}
		})
	}
}

// Whoever does not know the password cannot prove that he does.
func FuzzNoChallengeIsAProof(f *testing.F) {
	f.Add("", "r=NONCE,s=AAAA,i=4096", "v=AAAA")
	f.Add("v=AAAA", "", "v=AAAA")
	f.Add("", "r=NONCE,s=AAAA,i=1000001", "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if smtp.ScramProven("hunter2", a, b, c) {
			t.Errorf("%q, %q, %q pass for a proof", a, b, c)
		}
	})
}

func TestARefusedLoginIsPermanentWithEveryMechanism(t *testing.T) {
	t.Parallel()
	for mechanism, opts := range map[string]smtp.Options{
		"PLAIN":         {Username: "club", Password: "hunter2"},
		"LOGIN":         {Username: "club", Password: "hunter2"},
		"SCRAM-SHA-256": {Username: "club", Password: "hunter2"},
		"XOAUTH2":       {Username: "club", Token: token("ya29.a0", nil)},
	} {
		s := withLogin(mechanism)
		s.scram.password = "hunter2"
		s.answer = func(_ int, step string) string {
			if step == "AUTH" {
				return "535 5.7.8 not with that"
			}
			return ""
		}
		opts.TLSConfig = testAuthority().trusted
		checkFailure(t, failure(t, t.Context(), newClient(t, start(t, s), opts)), outbox.Credentials, "535 5.7.8", false)
		if got := logins(s); len(got) != 1 || got[0] != mechanism {
			t.Errorf("got logins %q, want %s once", got, mechanism)
		}
	}
}

func TestATokenIsAskedForOncePerConnection(t *testing.T) {
	t.Parallel()
	s := withLogin("LOGIN PLAIN XOAUTH2")
	var asked atomic.Int32
	c := newClient(t, start(t, s), smtp.Options{
		Username: "avisos@club.example", MaxMessages: 2, TLSConfig: testAuthority().trusted,
		Token: func(context.Context) (string, error) { return fmt.Sprintf("ya29.%d", asked.Add(1)), nil },
	})
	for range 4 {
		if id, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatalf("got %q, %v, want the email sent", id, err)
		}
	}
	want := 0
	for _, line := range s.said() {
		if response, ok := strings.CutPrefix(line[strings.IndexByte(line, ' ')+1:], "AUTH XOAUTH2 "); ok {
			want++
			decoded, err := base64.StdEncoding.DecodeString(response)
			if said := fmt.Sprintf("user=avisos@club.example\x01auth=Bearer ya29.%d\x01\x01", want); err != nil || string(decoded) != said {
				t.Errorf("got %q, %v, want %q", decoded, err, said)
			}
		}
	}
	if got := asked.Load(); got != 2 || want != 2 {
		t.Errorf("the token was asked for %d times and sent %d times, want 2", got, want)
	}
}

func TestATokenThatCannotBeHadIsTransientAndABrokenOnePermanent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		token          func(context.Context) (string, error)
		offers         string
		category, code string
	}{
		{token("", errors.New("no token for avisos@club.example")), "XOAUTH2", outbox.Network, "credenciales_excepcion"},
		{token("", nil), "XOAUTH2", outbox.Credentials, "clave_invalida"},
		{token("ya29\x01\x01", nil), "XOAUTH2", outbox.Credentials, "clave_invalida"},
		{token("ya29", nil), "PLAIN LOGIN", outbox.Credentials, "auth_sin_mecanismo"},
	}
	for _, test := range tests {
		s := withLogin(test.offers)
		c := newClient(t, start(t, s), smtp.Options{Username: "club", Token: test.token, TLSConfig: testAuthority().trusted})
		checkFailure(t, failure(t, t.Context(), c), test.category, test.code, false)
		if got := logins(s); len(got) != 0 {
			t.Errorf("%s: got logins %q, want none", test.code, got)
		}
	}
}

func TestATokenThatHangsEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := withLogin("XOAUTH2")
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, start(t, s), smtp.Options{
		Username: "club", TLSConfig: testAuthority().trusted,
		Token: func(ctx context.Context) (string, error) { cancel(); <-ctx.Done(); return "", ctx.Err() },
	})
	checkFailure(t, failure(t, ctx, c), outbox.Network, "credenciales_excepcion", false)
}
