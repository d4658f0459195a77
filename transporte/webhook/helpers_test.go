package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

func TestMain(m *testing.M) { sendertest.Main(m) }

const rowID = "0d7a3c52-b1f0-4e7f-8a90-112233445566"

// secret returns a secret of n bytes.
func secret(letter string, n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, n)))
}

// order is a message whose endpoint's URL is its destination.
func order(url string) transporte.Message {
	return transporte.Message{
		ID: rowID, TenantID: "club-7", Channel: "webhook", Destination: url, Template: "pedido.creado",
		Data: json.RawMessage(`{"type": "pedido.creado",  "data": {"pedido": "ñ <1>"}}`),
	}
}

// signedBy finds an endpoint with these secrets at the message's destination.
func signedBy(secrets ...string) func(context.Context, transporte.Message) (webhook.Endpoint, bool, error) {
	return func(context.Context, transporte.Message) (webhook.Endpoint, bool, error) {
		return webhook.Endpoint{Secrets: secrets}, true, nil
	}
}

var development = webhook.Options{Development: true}

func newSender(t *testing.T, find func(context.Context, transporte.Message) (webhook.Endpoint, bool, error), opts webhook.Options) *webhook.Sender {
	t.Helper()
	s, err := webhook.New(find, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// received is a request as the receiver saw it.
type received struct {
	header http.Header
	body   []byte
}

// receiver answers every webhook with a status and keeps it.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []received
}

func newReceiver(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = sendertest.Server(t, func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got = append(r.got, received{request.Header, body})
		r.mu.Unlock()
		w.WriteHeader(status)
	})
	return r
}

// webhooks returns what came so far.
func (r *receiver) webhooks() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// checkFailure wants err to be this failure, before any request was written.
func checkFailure(t *testing.T, err error, category, code string) {
	t.Helper()
	sendertest.Want(t, err, transporte.Error{Category: category, Code: code})
}

// resolver is a name server whose every name has the addresses that a call of answer returns.
func resolver(answer func(name string) []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			_ = serveName(theirs, answer)
		}()
		return ours, nil
	}}
}

// noNames is a resolver for tests that must not ask for any.
func noNames(t *testing.T) *net.Resolver {
	return resolver(func(name string) []string { t.Errorf("%s was looked up", name); return nil })
}

// serveName answers one question, framed as over TCP.
func serveName(c net.Conn, answer func(string) []string) error {
	size := make([]byte, 2)
	if _, err := io.ReadFull(c, size); err != nil {
		return err
	}
	packet := make([]byte, int(size[0])<<8|int(size[1]))
	if _, err := io.ReadFull(c, packet); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil || len(m.Questions) != 1 {
		return errors.Join(err, errors.New("not one question"))
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	q := m.Questions[0]
	for _, address := range answer(q.Name.String()) {
		a := netip.MustParseAddr(address)
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		if a.Is4() && q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		}
		if a.Is6() && q.Type == dnsmessage.TypeAAAA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	packet, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append([]byte{byte(len(packet) >> 8), byte(len(packet))}, packet...))
	return err
}
