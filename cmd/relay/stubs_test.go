package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

// secret signs the webhooks of the scripts.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// stub is what a script's relay sends to. It keeps what arrives.
type stub struct {
	mu      sync.Mutex
	arrived []string
	grown   chan struct{}
	held    chan struct{} // closed when what arrives may be answered
}

func newStub() *stub {
	s := &stub{grown: make(chan struct{}, 1), held: make(chan struct{})}
	close(s.held)
	return s
}

// take keeps what has arrived, and waits while it is held.
func (s *stub) take(what string) {
	s.mu.Lock()
	s.arrived = append(s.arrived, what)
	held := s.held
	s.mu.Unlock()
	select {
	case s.grown <- struct{}{}:
	default:
	}
	<-held
}

func (s *stub) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
}

// let answers what is held.
func (s *stub) let() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.held:
	default:
		close(s.held)
	}
}

// await gives the first n that arrive.
func (s *stub) await(n int) ([]string, error) {
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		arrived := slices.Clone(s.arrived)
		s.mu.Unlock()
		if len(arrived) >= n {
			return arrived, nil
		}
		select {
		case <-s.grown:
		case <-deadline:
			return nil, fmt.Errorf("got %d messages, want %d", len(arrived), n)
		}
	}
}

// ServeHTTP takes a webhook whose signature is right.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	verifier, _ := standardwebhooks.NewWebhook(secret)
	if err != nil || verifier.Verify(body, r.Header) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.take(r.URL.Path + " " + string(body))
}

// serveMail takes the messages of one SMTP session.
func (s *stub) serveMail(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	fmt.Fprint(conn, "220 stub ESMTP\r\n")
	for in.Scan() {
		switch verb := strings.ToUpper(strings.Fields(in.Text() + " -")[0]); verb {
		case "DATA":
			fmt.Fprint(conn, "354 go on\r\n")
			var text strings.Builder
			for in.Scan() && in.Text() != "." {
				fmt.Fprintln(&text, in.Text())
			}
			s.take(text.String())
			fmt.Fprint(conn, "250 queued\r\n")
		case "QUIT":
			fmt.Fprint(conn, "221 bye\r\n")
			return
		default:
			fmt.Fprint(conn, "250 ok\r\n")
		}
	}
}

// kept is what a script's commands keep.
func kept(ts *testscript.TestScript) map[string]any { return ts.Value("values").(map[string]any) }

// stubOf is the script's stub.
func stubOf(ts *testscript.TestScript) *stub {
	s, _ := kept(ts)["stub"].(*stub)
	if s == nil {
		ts.Fatalf("the script has neither receiver nor mailbox")
	}
	return s
}

// receiverCommand starts a receiver of webhooks at $RECEIVER.
func receiverCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := newStub()
	server := httptest.NewServer(s)
	ts.Defer(server.Close)
	ts.Defer(s.let)
	ts.Setenv("RECEIVER", server.URL)
	kept(ts)["stub"] = s
}

// mailboxCommand starts a mail server at $MAILBOX.
func mailboxCommand(ts *testscript.TestScript, neg bool, args []string) {
	s := newStub()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	ts.Defer(s.let)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serveMail(conn)
		}
	}()
	ts.Setenv("MAILBOX", listener.Addr().String())
	kept(ts)["stub"] = s
}

func holdCommand(ts *testscript.TestScript, neg bool, args []string) { stubOf(ts).hold() }
func letCommand(ts *testscript.TestScript, neg bool, args []string)  { stubOf(ts).let() }

// receivedCommand waits until so many messages have arrived, and prints them.
func receivedCommand(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	arrived, err := stubOf(ts).await(n)
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), strings.Join(arrived, "\n"))
}

// signalCommand sends a signal to what runs in the background.
func signalCommand(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(signals[args[0]]))
	}
}

// serverCommand gives the script a server of its own, in $DATABASE_URL, and kills and restarts it.
func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	values := kept(ts)
	switch args[0] {
	case "start":
		server := pgtest.Server(values["t"].(testing.TB), localpg.Options{})
		values["server"] = server
		ts.Setenv("DATABASE_URL", server.DSN())
	case "kill":
		ts.Check(values["server"].(*localpg.Server).Kill())
	case "restart":
		ts.Check(values["server"].(*localpg.Server).Restart(values["t"].(testing.TB).Context()))
	}
}
