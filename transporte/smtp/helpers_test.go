package smtp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

const rowID = "0d7a3c52-b1f0-4e7f-8a90-112233445566"

var reminder = transporte.Email{
	From: "Club <avisos@club.example>", To: "Ana <ana@destino.example>",
	Subject: "Tu turno de mañana", HTML: "<p>Mañana a las 10</p>", Text: "Mañana a las 10",
	RowID: rowID, IdempotencyKey: "club-7:turno-31",
}

// start runs s until the test ends.
func start(t *testing.T, s *server) *server {
	t.Helper()
	s.listen()
	t.Cleanup(s.stop)
	return s
}

// replying is a server that says reply to one step.
func replying(step, reply string) *server {
	return &server{answer: func(_ int, at string) string {
		if at == step {
			return reply
		}
		return ""
	}}
}

// newClient returns a Client for s. The test fails if a connection outlives it.
func newClient(t *testing.T, s *server, opts smtp.Options) *smtp.Client {
	t.Helper()
	c, err := smtp.New(s.addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		waitfor.True(t, "every connection is closed", func() bool { _, open, _ := s.counts(); return open == 0 })
	})
	return c
}

// failure sends reminder and returns its error, which must be a *transporte.Error and show nothing of the server's text.
func failure(t *testing.T, ctx context.Context, c *smtp.Client) *transporte.Error {
	t.Helper()
	id, err := c.Send(ctx, reminder)
	return asFailure(t, id, err)
}

func asFailure(t *testing.T, id string, err error) *transporte.Error {
	t.Helper()
	var failed *transporte.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %q, %v, want a *transporte.Error", id, err)
	}
	if strings.ContainsAny(failed.Code, "@<>") || strings.Contains(failed.Code, "ana") || len(failed.Code) > 64 {
		t.Errorf("the code repeats the server's text: %q", failed.Code)
	}
	return failed
}

// checkFailure wants this category and code.
func checkFailure(t *testing.T, failed *transporte.Error, category, code string, uncertain bool) {
	t.Helper()
	if failed.Category != category || failed.Code != code || failed.Uncertain != uncertain {
		t.Errorf("got %s (%s) uncertain %v, want %s (%s) uncertain %v",
			failed.Category, failed.Code, failed.Uncertain, category, code, uncertain)
	}
}

// authority is a certificate authority for 127.0.0.1, and what a client needs to trust it.
type authority struct {
	server  *tls.Config
	trusted *tls.Config
}

var testAuthority = sync.OnceValue(func() authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	if err != nil {
		panic(err)
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		panic(err)
	}
	root, err := x509.ParseCertificate(caDER)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return authority{
		server:  &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		trusted: &tls.Config{RootCAs: roots},
	}
})
