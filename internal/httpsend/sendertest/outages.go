package sendertest

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// outages are the ways in which no answer comes. A conversation is the server's part: it calls expire when the attempt's
// time is over, and the connection ends when it returns.
var outages = []struct {
	name      string
	scheme    string // empty: http
	talk      func(c net.Conn, expire func())
	code      string
	uncertain bool
}{
	{"TLS handshake without an answer", "https", func(c net.Conn, expire func()) { readByte(c); expire(); hold(c) }, "timeout", false},
	{"plain text where TLS was asked for", "https", func(c net.Conn, _ func()) { readByte(c); say(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, "tls", false},
	{"reset after the request", "", func(c net.Conn, _ func()) { readRequest(c); reset(c) }, "sin_respuesta", true},
	{"closed after the request", "", func(c net.Conn, _ func()) { readRequest(c) }, "sin_respuesta", true},
	{"no answer in time", "", func(c net.Conn, expire func()) { readRequest(c); expire(); hold(c) }, "timeout", true},
	{"status a byte at a time", "", func(c net.Conn, expire func()) {
		readRequest(c)
		drip(c, "HTTP/1.1 200 OK\r\nX: aaaaaaaaaaaaaaaa")
		expire()
		hold(c)
	}, "timeout", true},
	{"closed within the status", "", func(c net.Conn, _ func()) { readRequest(c); say(c, "HTTP/1.1 20") }, "respuesta_invalida", true},
	{"closed within the header", "", func(c net.Conn, _ func()) { readRequest(c); say(c, "HTTP/1.1 200 OK\r\nConte") }, "respuesta_invalida", true},
	{"another protocol", "", func(c net.Conn, _ func()) { readRequest(c); say(c, "220 mail.club.example ESMTP\r\n") }, "respuesta_invalida", true},
	{"a header of a megabyte", "", func(c net.Conn, _ func()) {
		readRequest(c)
		say(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("a", 1<<20)+"\r\nContent-Length: 0\r\n\r\n")
	}, "respuesta_invalida", true},
}

// Outages checks what a sender makes of every way in which no answer comes.
func Outages(t *testing.T, send Send) {
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			attempt := NewAttempt()
			address := converse(t, func(c net.Conn) { o.talk(c, attempt.Expire) })
			if o.scheme == "" {
				o.scheme = "http"
			}
			id, err := send(attempt, newClient(t), o.scheme+"://"+address)
			if id != "" {
				t.Errorf("got id %q with the error", id)
			}
			Want(t, err, transporte.Error{Category: outbox.Network, Code: o.code, Uncertain: o.uncertain})
		})
	}
	t.Run("nothing listens", func(t *testing.T) {
		t.Parallel()
		_, err := send(t.Context(), newClient(t), "http://"+Refusing(t))
		Want(t, err, transporte.Error{Category: outbox.Network, Code: "conexion"})
	})
	t.Run("dial without an answer", func(t *testing.T) {
		t.Parallel()
		attempt := NewAttempt()
		transport := httpsend.NewTransport()
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			attempt.Expire()
			<-t.Context().Done() // not the dial's context: net/http lets a dial outlive its request
			return nil, io.ErrClosedPipe
		}
		_, err := send(attempt, &http.Client{Transport: transport}, "http://club.example")
		Want(t, err, transporte.Error{Category: outbox.Network, Code: "timeout"})
	})
	t.Run("unknown certificate", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		_, err := send(t.Context(), newClient(t), s.URL)
		Want(t, err, transporte.Error{Category: outbox.Network, Code: "tls"})
	})
	// Nobody knows which side was first: the request was on its way, or it was not.
	t.Run("reset before the request", func(t *testing.T) {
		t.Parallel()
		address := converse(t, reset)
		_, err := send(t.Context(), newClient(t), "http://"+address)
		failed := Failure(t, err)
		if failed.Category != outbox.Network || (failed.Code != "conexion" && failed.Code != "sin_respuesta") {
			t.Errorf("got %+v, want red with code conexion or sin_respuesta", failed)
		}
	})
	cancellations(t, send)
}

func cancellations(t *testing.T, send Send) {
	t.Run("cancelled before the call", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := send(ctx, newClient(t), "http://"+Refusing(t))
		Want(t, err, transporte.Error{Category: outbox.Network, Code: "cancelado"})
	})
	t.Run("cancelled while it waits, with a cause", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		address := converse(t, func(c net.Conn) { readRequest(c); cancel(io.ErrUnexpectedEOF); hold(c) })
		_, err := send(ctx, newClient(t), "http://"+address)
		Want(t, err, transporte.Error{Category: outbox.Network, Code: "cancelado", Uncertain: true})
	})
}

// newClient returns a client as senders use by default, whose connections end with the test.
func newClient(t *testing.T) *http.Client {
	client := httpsend.Client(nil)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// converse listens and has a conversation on each connection. All of them end with the test.
func converse(t *testing.T, talk func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var talks sync.WaitGroup
	talks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			talks.Go(func() { defer c.Close(); talk(c) })
		}
	})
	t.Cleanup(func() { l.Close(); talks.Wait() })
	return l.Addr().String()
}

func readByte(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }

func readRequest(c net.Conn) {
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
}

func say(c net.Conn, s string) { _, _ = io.WriteString(c, s) }

func drip(c net.Conn, s string) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := range len(s) {
		<-tick.C
		say(c, s[i:i+1])
	}
}

// hold keeps the connection until the other side gives it up.
func hold(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}
