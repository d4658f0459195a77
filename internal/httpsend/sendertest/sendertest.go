// Package sendertest is what every sender over HTTP is tested with: outages, odd answers, a table of faults, and load.
//
//	func TestMain(m *testing.M) { sendertest.Main(m) } // fails if a goroutine is left
//
//	func TestResendWithoutAnAnswer(t *testing.T) { sendertest.Outages(t, send) }
//
// where send makes a sender for the given client and address and sends one message with it.
package sendertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/transporte"
)

// Send makes a sender that uses client and baseURL, and sends one message.
type Send func(ctx context.Context, client *http.Client, baseURL string) (externalID string, err error)

// Main runs the tests of a package and fails if they leave goroutines of net/http or of this module behind.
func Main(m *testing.M) {
	failed := m.Run()
	if left := goroutinesLeft(); left != "" && failed == 0 {
		fmt.Fprintf(os.Stderr, "goroutines left:\n%s\n", left)
		failed = 1
	}
	os.Exit(failed)
}

// goroutinesLeft waits a while for goroutines to end: those of a closed connection need a moment. An idle connection that
// nobody closed lasts 30 s, and must be seen.
func goroutinesLeft() (left string) {
	buffer := make([]byte, 4<<20)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left = ""
		stacks := string(buffer[:runtime.Stack(buffer, true)])
		for i, stack := range strings.Split(stacks, "\n\n") {
			ours := strings.Contains(stack, "net/http.") || strings.Contains(stack, "outbox-relay/")
			if i > 0 && ours { // the first is this one
				left += stack + "\n\n"
			}
		}
		if left == "" || time.Now().After(end) {
			return left
		}
	}
}

// Refusing gives an address that refuses connections. Its port is that of a connection's other end, so nobody else can begin
// to listen there before the test is over.
func Refusing(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

// Server starts a server that ends with the test.
func Server(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// Failure returns err as the *transporte.Error that it must be.
func Failure(t *testing.T, err error) *transporte.Error {
	t.Helper()
	var failed *transporte.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got error %v, want a *transporte.Error", err)
	}
	return failed
}

// Want checks err against all that a *transporte.Error says.
func Want(t *testing.T, err error, want transporte.Error) {
	t.Helper()
	if got := Failure(t, err); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}
