package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// keyHeader carries the idempotency key, whose end is the message's number.
const keyHeader = "Idempotency-Key"

var errHung = errors.New("not answered")

// httpStub is a provider on this host. It reads every request to its end.
type httpStub struct{ *httptest.Server }

// newHTTPStub answers requests with accept, which gives the message's number.
func newHTTPStub(accept func(w http.ResponseWriter, r *http.Request, body []byte) (n int, err error), handle handle) httpStub {
	return httpStub{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender gave up
		}
		n, err := accept(w, r, body)
		switch {
		case err == nil:
			handle(n, at)
		case !errors.Is(err, errHung):
			http.Error(w, err.Error(), http.StatusBadRequest) // discards the message, and so fails the run
		}
	}))}
}

func (s httpStub) end() error { s.Close(); return nil }

// acceptEmail answers as Resend does.
func acceptEmail(w http.ResponseWriter, r *http.Request, body []byte) (int, error) {
	var email struct {
		From, Subject, HTML, Text string
		To                        []string
	}
	if err := json.Unmarshal(body, &email); err != nil {
		return 0, err
	}
	if email.From == "" || len(email.To) != 1 || email.Subject == "" || email.HTML == "" || email.Text == "" {
		return 0, errors.New("not an email")
	}
	n, err := numberOf(r.Header.Get(keyHeader))
	if err != nil {
		return 0, err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Ratelimit-Remaining", "1")
	_, err = fmt.Fprintf(w, `{"id":"49a3999c-0ce1-4ea6-ab68-%012d"}`, n)
	return n, err
}

// acceptWebhook answers as most receivers do.
func acceptWebhook(w http.ResponseWriter, r *http.Request, body []byte) (int, error) {
	if !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") {
		return 0, errors.New("not signed")
	}
	n, err := decode(body)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return n, err
}

// numberOf reads a key like "tenant:17".
func numberOf(key string) (int, error) {
	return strconv.Atoi(key[strings.LastIndexByte(key, ':')+1:])
}

// smtpStub is an SMTP server that takes every email.
type smtpStub struct {
	listener net.Listener
	handle   handle
	talks    sync.WaitGroup
}

func newSMTPStub(handle handle) (*smtpStub, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &smtpStub{listener: listener, handle: handle}
	s.talks.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.talks.Go(func() { s.talk(conn) })
		}
	})
	return s, nil
}

func (s *smtpStub) addr() string { return s.listener.Addr().String() }

// end waits for the conversations, which end when their clients go.
func (s *smtpStub) end() error {
	err := s.listener.Close()
	s.talks.Wait()
	return err
}

func (s *smtpStub) talk(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	say := func(reply string) bool { _, err := io.WriteString(conn, reply+"\r\n"); return err == nil }
	for ok := say("220 mail.example ESMTP"); ok; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		switch verb {
		case "EHLO":
			ok = say("250-mail.example\r\n250-8BITMIME\r\n250 SIZE 20000000")
		case "DATA":
			ok = say("354 End data with <CR><LF>.<CR><LF>") && s.take(r) && say("250 2.0.0 Ok: queued as 4XyZ1k2M3n4P5")
		case "QUIT":
			say("221 2.0.0 Bye")
			return
		default:
			ok = say("250 2.1.0 Ok")
		}
	}
}

// take reads an email up to the final dot.
func (s *smtpStub) take(r *bufio.Reader) bool {
	at, n := time.Now(), -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return false
		}
		if key, ok := bytes.CutPrefix(line, []byte(keyHeader+": ")); ok {
			if n, err = numberOf(string(bytes.TrimSpace(key))); err != nil {
				return false
			}
		}
		if string(line) == ".\r\n" {
			break
		}
	}
	if n < 0 {
		return false
	}
	s.handle(n, at)
	return true
}
