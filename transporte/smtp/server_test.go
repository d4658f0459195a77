package smtp_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// What a server can do instead of replying.
const (
	drop  = "drop"  // close the connection
	reset = "reset" // close it, and have the client see "connection reset"
	hang  = "hang"  // say nothing until the client goes
	drip  = "drip"  // one byte after the other, and never a whole reply
	flood = "flood" // a reply without an end
)

// server is an SMTP server that takes every message, but for what answer says.
type server struct {
	addr     string
	listener net.Listener
	done     sync.WaitGroup

	// answer returns what is said to a step (greeting, a command, or end for the final dot) of the connection n, counted
	// from 1. Empty means the usual reply.
	answer func(n int, step string) string
	// last is the step after whose reply the connection closes. Empty is none.
	last string
	// offers follow EHLO, those of secure after STARTTLS.
	offers, secure []string
	tls            *tls.Config
	implicit       bool
	scram          scramServer
	// beforeBody is called between the reply to DATA and the first byte read of the text.
	beforeBody func()

	mu       sync.Mutex
	opened   int
	open     map[net.Conn]bool
	lines    []string // what the clients said, with the number of the connection before it
	messages [][]byte
}

// listen starts s on a port of its own. The fields above the mutex must not change any more.
func (s *server) listen() {
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		panic(err)
	}
	s.addr = s.listener.Addr().String()
	s.done.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.accept(conn)
		}
	})
}

// dial connects to s without a port, of which a fuzz test would use up all.
func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	s.accept(theirs)
	return ours, nil
}

func (s *server) accept(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[net.Conn]bool{}
	}
	s.opened++
	s.open[conn] = true
	n := s.opened
	s.done.Go(func() { s.serve(conn, n) })
}

// stop closes every connection and waits for the goroutines.
func (s *server) stop() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
	s.mu.Lock()
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

func (s *server) serve(conn net.Conn, n int) {
	defer func() {
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	t := &talk{server: s, raw: conn, n: n, offers: s.offers}
	if s.implicit {
		t.encrypt()
	} else {
		t.use(conn)
	}
	if !t.say("greeting", "220 mail.test ESMTP") {
		return
	}
	for t.step() {
	}
}

// talk is one connection of a server.
type talk struct {
	*server
	raw, conn net.Conn
	r         *bufio.Reader
	n         int
	offers    []string
}

func (t *talk) use(conn net.Conn) { t.conn, t.r = conn, bufio.NewReader(conn) }
func (t *talk) encrypt()          { t.use(tls.Server(t.raw, t.tls)) }

// step reads a command and replies. It returns false at the end.
func (t *talk) step() bool {
	line, err := t.r.ReadString('\n')
	if err != nil {
		return false
	}
	line = strings.TrimRight(line, "\r\n")
	t.note(line)
	verb, _, _ := strings.Cut(line, " ")
	switch verb {
	case "EHLO":
		return t.say(verb, "250-"+strings.Join(append([]string{"mail.test"}, t.offers...), "\r\n250-")+"\r\n250 HELP")
	case "STARTTLS":
		asked := t.ask(verb)
		if !t.reply(verb, asked, "220 go ahead") {
			return false
		}
		if asked == "" {
			t.encrypt()
			t.offers = t.secure
		}
		return true
	case "AUTH":
		return t.auth(line)
	case "DATA":
		return t.data()
	case "QUIT":
		t.say(verb, "221 bye")
		return false
	case "*":
		return t.say(verb, "501 cancelled")
	}
	return t.say(verb, "250 2.0.0 Ok")
}

func (t *talk) auth(line string) bool {
	var asked []func(answer string) (challenge string)
	switch {
	case line == "AUTH LOGIN":
		asked = []func(string) string{constant("Username:"), constant("Password:")}
	case line == "AUTH SCRAM-SHA-256":
		asked = t.scram.challenges()
	case strings.HasPrefix(line, "AUTH XOAUTH2") && t.ask("AUTH") != "":
		asked = []func(string) string{constant(`{"status":"400","schemes":"Bearer"}`)}
	}
	answer := ""
	for _, challenge := range asked {
		_, _ = fmt.Fprintf(t.conn, "334 %s\r\n", base64.StdEncoding.EncodeToString([]byte(challenge(answer))))
		line, err := t.r.ReadString('\n')
		if err != nil {
			return false
		}
		line = strings.TrimSpace(line)
		t.note(line)
		if line == "*" {
			return t.say("*", "501 cancelled")
		}
		decoded, _ := base64.StdEncoding.DecodeString(line)
		answer = string(decoded)
	}
	return t.say("AUTH", "235 2.7.0 Welcome")
}

func constant(challenge string) func(string) string { return func(string) string { return challenge } }

func (t *talk) data() bool {
	asked := t.ask("DATA")
	if goOn := t.reply("DATA", asked, "354 End data with <CR><LF>.<CR><LF>"); !goOn || asked != "" {
		return goOn
	}
	if t.beforeBody != nil {
		t.beforeBody()
	}
	var body []byte
	for {
		line, err := t.r.ReadBytes('\n')
		if err != nil {
			return false
		}
		if string(line) == ".\r\n" {
			break
		}
		body = append(body, bytes.TrimPrefix(line, []byte("."))...)
	}
	t.mu.Lock()
	t.messages = append(t.messages, body)
	queue := fmt.Sprintf("QUEUE-%d", len(t.messages))
	t.mu.Unlock()
	return t.say("end", "250 2.0.0 Ok: queued as "+queue)
}

// ask returns what answer wants to be said to a step.
func (t *talk) ask(step string) string {
	if t.answer == nil {
		return ""
	}
	return t.answer(t.n, step)
}

// say replies to a step as usual, or as answer wants it. It returns false if the connection is over.
func (t *talk) say(step, usual string) bool { return t.reply(step, t.ask(step), usual) }

func (t *talk) reply(step, reply, usual string) bool {
	switch reply {
	case "":
		reply = usual
	case drop:
		return false
	case reset:
		_ = t.raw.(*net.TCPConn).SetLinger(0)
		return false
	case hang:
		_, _ = t.r.ReadByte()
		return false
	case drip, flood:
		return t.pour(reply)
	}
	_, err := fmt.Fprintf(t.conn, "%s\r\n", reply)
	return err == nil && step != t.last
}

func (t *talk) pour(how string) bool {
	chunk, pause := bytes.Repeat([]byte("250-more and more\r\n"), 1000), time.Duration(0)
	if how == drip {
		chunk, pause = []byte("2"), 5*time.Millisecond
	}
	for {
		if _, err := t.conn.Write(chunk); err != nil {
			return false
		}
		time.Sleep(pause) // a server that is slow
	}
}

func (t *talk) note(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%d %s", t.n, line))
}

// said returns what the clients said so far.
func (s *server) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// counts returns how many connections were opened, how many are open, and how many messages came.
func (s *server) counts() (opened, open, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, len(s.open), len(s.messages)
}

// message returns the n-th message.
func (s *server) message(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[n]
}
