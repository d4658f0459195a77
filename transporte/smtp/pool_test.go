package smtp_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

// Not parallel: it counts goroutines.
func TestTenThousandEmailsReuseAFewConnectionsAndLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	s := &server{}
	s.listen()
	c, err := smtp.New(s.addr, smtp.Options{MaxConnections: 8, MaxMessages: 500})
	if err != nil {
		t.Fatal(err)
	}
	const emails, senders = 10_000, 64
	numbers := make(chan int)
	ids := make([]string, emails)
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for n := range numbers {
				e := reminder
				e.RowID, e.HTML = fmt.Sprintf("row-%d", n), ""
				id, err := c.Send(t.Context(), e)
				if err != nil {
					t.Errorf("email %d: %v", n, err)
				}
				ids[n] = id
			}
		})
	}
	for n := range emails {
		numbers <- n
	}
	close(numbers)
	sending.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	waitfor.True(t, "every connection is closed", func() bool { _, open, _ := s.counts(); return open == 0 })
	opened, _, messages := s.counts()
	if messages != emails {
		t.Errorf("got %d messages, want %d", messages, emails)
	}
	if opened < emails/500 || opened > emails/500+8 { // every one but the last 8 carries 500
		t.Errorf("got %d connections, want %d to %d", opened, emails/500, emails/500+8)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) != emails {
		t.Errorf("got %d ids, want %d", len(ids), emails)
	}
	s.stop()
	waitfor.True(t, "every goroutine is gone", func() bool { return runtime.NumGoroutine() <= before })
}

func TestNoMoreThanMaxConnectionsAreInUse(t *testing.T) {
	t.Parallel()
	reached, goOn := make(chan int, 10), make(chan struct{})
	s := start(t, &server{answer: func(n int, step string) string {
		if step == "MAIL" {
			reached <- n
			<-goOn
		}
		return ""
	}})
	c := newClient(t, s, smtp.Options{MaxConnections: 2})
	var sending sync.WaitGroup
	for range 2 {
		sending.Go(func() {
			if _, err := c.Send(t.Context(), reminder); err != nil {
				t.Error(err)
			}
		})
	}
	<-reached
	<-reached
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	checkFailure(t, failure(t, ctx, c), outbox.Network, "sin_turno", false)
	close(goOn)
	sending.Wait()
	if _, err := c.Send(t.Context(), reminder); err != nil {
		t.Errorf("got %v, want the email sent once there is room", err)
	}
	if opened, _, messages := s.counts(); opened != 2 || messages != 3 {
		t.Errorf("got %d messages over %d connections, want 3 over 2", messages, opened)
	}
}

// piped returns a Client whose server is in the same bubble of synctest.
func piped(t *testing.T, s *server) *smtp.Client {
	t.Helper()
	return pipedWith(t, s, smtp.Options{})
}

func pipedWith(t *testing.T, s *server, opts smtp.Options) *smtp.Client {
	t.Helper()
	opts.DialContext = s.dial
	c, err := smtp.New("smtp.club.example:587", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// One that begins late may be cut after it has left, and arrives twice.
func TestAnEmailWaitsForItsTurnHalfOfItsTimeAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := replying("MAIL", hang)
		defer s.stop()
		c := pipedWith(t, s, smtp.Options{MaxConnections: 1})
		begun := time.Now()
		var first sync.WaitGroup
		first.Go(func() { checkFailure(t, failure(t, t.Context(), c), outbox.Network, "timeout", false) })
		synctest.Wait()
		checkFailure(t, failure(t, t.Context(), c), outbox.Network, "sin_turno", false)
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("it waited %s, want half a minute", took)
		}
		first.Wait()
	})
}

func TestAnIdleConnectionSaysGoodbyeAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		defer s.stop()
		c := piped(t, s)
		for range 3 { // each begins the time anew
			if _, err := c.Send(t.Context(), reminder); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30*time.Second - time.Nanosecond)
		}
		if opened, open, _ := s.counts(); opened != 1 || open != 1 {
			t.Errorf("got %d connections, %d of them open, before the time is over, want 1 and 1", opened, open)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, open, _ := s.counts(); open != 0 || !slices.Contains(s.said(), "1 QUIT") {
			t.Errorf("got %d open connections, %q, want QUIT and none", open, s.said())
		}
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Errorf("got %v, want the next email sent over a new connection", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAConnectionCarriesNoMoreThanMaxMessages(t *testing.T) {
	t.Parallel()
	s := start(t, &server{})
	c := newClient(t, s, smtp.Options{MaxMessages: 2})
	for range 5 {
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatal(err)
		}
	}
	if opened, _, _ := s.counts(); opened != 3 {
		t.Errorf("got %d connections for 5 emails, want 3", opened)
	}
}

func TestAConnectionThatTheServerClosedWhileIdleIsReplacedOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{drop, reset, "421 4.4.2 idle for too long"} {
		for _, times := range []int{1, 2} { // how many connections the server closes
			passed := false
			s := start(t, &server{answer: func(n int, step string) string {
				switch {
				case step == "MAIL" && !passed:
					passed = true
				case step == "MAIL" && n <= times:
					return how
				}
				return ""
			}})
			c := newClient(t, s, smtp.Options{})
			if _, err := c.Send(t.Context(), reminder); err != nil {
				t.Fatal(err)
			}
			_, err := c.Send(t.Context(), reminder)
			opened, _, messages := s.counts()
			if times == 1 && (err != nil || opened != 2 || messages != 2) {
				t.Errorf("%s: got %v, %d messages over %d connections, want 2 over 2", how, err, messages, opened)
			}
			if times == 2 && (err == nil || opened != 2 || messages != 1) {
				t.Errorf("%s twice: got %v, %d messages over %d connections, want a failure", how, err, messages, opened)
			}
		}
	}
}

func TestAConnectionLostWithinAMessageIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"RCPT", "DATA", "end"} {
		seen := map[string]int{}
		s := start(t, &server{answer: func(n int, at string) string {
			if seen[at]++; at == step && seen[at] == 2 {
				return drop
			}
			return ""
		}})
		c := newClient(t, s, smtp.Options{})
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatal(err)
		}
		checkFailure(t, failure(t, t.Context(), c), outbox.Network, "sin_respuesta", step == "end")
		if opened, _, _ := s.counts(); opened != 1 {
			t.Errorf("lost at %s: got %d connections, want no second try", step, opened)
		}
	}
}

func TestSendAfterCloseKeepsNoConnection(t *testing.T) {
	t.Parallel()
	s := start(t, &server{})
	c := newClient(t, s, smtp.Options{})
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatal(err)
		}
		waitfor.True(t, "the connection is closed", func() bool { _, open, _ := s.counts(); return open == 0 })
	}
}

func TestCloseWaitsForTheServerAndNotLong(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]time.Duration{"": time.Second, hang: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			s.answer = func(_ int, step string) string {
				if step != "QUIT" {
					return ""
				}
				time.Sleep(time.Second) // a server that takes its time
				return how
			}
			defer s.stop()
			c := piped(t, s)
			if _, err := c.Send(t.Context(), reminder); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("QUIT answered with %q: Close took %s, want %s", how, took, want)
			}
		})
	}
}

// The second reply would be taken for that to the next MAIL, and so on: a refused email would look sent.
func TestAConnectionWithMoreRepliesThanCommandsIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, replying("end", "250 2.0.0 Ok\r\n250 2.0.0 Ok again"))
	c := newClient(t, s, smtp.Options{})
	for range 2 {
		if _, err := c.Send(t.Context(), reminder); err != nil {
			t.Fatal(err)
		}
	}
	if opened, _, _ := s.counts(); opened != 2 {
		t.Errorf("got %d connections, want 2", opened)
	}
}
