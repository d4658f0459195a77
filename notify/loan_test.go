package notify

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// lent sends announcements until one comes with the session, as to a relay that is asleep.
func (e *ear) lent(t *testing.T) *Loan {
	t.Helper()
	for range 100 {
		e.exec(t, "select pg_notify($1, '')", channel)
		select {
		case loan := <-e.Bell.Lent():
			return loan
		case <-e.Bell.C(): // it came before this waited
		case <-time.After(patience):
			t.Fatal("got neither the session nor a wake-up")
		}
	}
	t.Fatal("got wake-ups only, want the session")
	return nil
}

func TestRelayThatSleepsIsLentTheSessionThatHeard(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.ProbeInterval = time.Hour
	e.listen(t)
	e.awaitUp(t)
	for range 2 {
		loan := e.lent(t)
		var name string
		if err := loan.Conn.QueryRow(t.Context(), "show application_name").Scan(&name); err != nil || name != ListenSession {
			t.Errorf("got the session %q, %v, want %q", name, err, ListenSession)
		}
		e.exec(t, "select pg_notify($1, $2)", channel, milliseconds(soon)) // while it is lent
		loan.Return()
		if got := receive(t, "what came meanwhile", e.Bell.C()); got != Schedule {
			t.Errorf("got %q, want %q", got, Schedule)
		}
		e.Bell.Looking()
	}
}

func TestRelayThatIsBusyGetsAWakeUpInsteadOfTheSession(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.ProbeInterval = time.Hour
	e.listen(t)
	e.awaitUp(t)
	e.exec(t, "select pg_notify($1, '')", channel) // nobody waits for a loan
	if got := receive(t, "a wake-up", e.Bell.C()); got != Notified {
		t.Errorf("got %q, want %q", got, Notified)
	}
	select {
	case <-e.Bell.Lent():
		t.Error("got the session as well")
	default:
	}
}

// Until the pool's probe has come back, it may be a session with another database.
func TestSessionThatHasHeardNoProbeIsNotLent(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	h := &handler{l: e.Listener, echo: make(chan struct{}, 1)}
	probe := probePrefix + "me"
	h.expected.Store(&probe)
	announce := func() (lent bool) {
		handled := make(chan struct{})
		go func() {
			defer close(handled)
			_ = h.HandleNotification(t.Context(), &pgconn.Notification{Payload: "x1"}, nil)
		}()
		select {
		case loan := <-e.Bell.Lent():
			loan.Return()
			<-handled
			return true
		case <-handled:
			return false
		}
	}
	if announce() {
		t.Error("got it lent before a probe")
	}
	_ = h.HandleNotification(t.Context(), &pgconn.Notification{Payload: probePrefix + "another"}, nil)
	if announce() {
		t.Error("got it lent after the probe of another relay")
	}
	_ = h.HandleNotification(t.Context(), &pgconn.Notification{Payload: probe}, nil)
	for !announce() { // the wait for a loan may begin too late for one
		if t.Context().Err() != nil {
			t.Fatal("got it never lent after the probe")
		}
	}
	(&Loan{h: h}).Refuse()
	_ = h.HandleNotification(t.Context(), &pgconn.Notification{Payload: probe}, nil)
	if announce() {
		t.Error("got it lent after a refusal and another probe")
	}
}

func TestNewSessionIsNotLentBeforeItsOwnProbe(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	notify, hold := e.Notify, make(chan chan struct{}, 1)
	e.Notify = func(ctx context.Context, payload string) error {
		select {
		case free := <-hold:
			<-free
		default:
		}
		return notify(ctx, payload)
	}
	e.ProbeInterval = time.Hour
	e.listen(t)
	e.awaitUp(t)
	e.lent(t).Return()
	free := make(chan struct{})
	hold <- free // the next probe
	e.exec(t, "select pg_terminate_backend($1)", int(receive(t, "the session", e.pids)))
	if err := e.change(t); err == nil {
		t.Fatal("got no change, want the session lost")
	}
	for receive(t, "the look after LISTEN", e.Bell.C()) != Listen {
	}
	for range 10 {
		e.exec(t, "select pg_notify($1, '')", channel)
		select {
		case loan := <-e.Bell.Lent():
			t.Error("got a session that has heard no probe")
			loan.Return()
		case <-e.Bell.C():
		}
	}
	close(free)
	if err := e.change(t); err != nil {
		t.Fatal(err)
	}
	e.lent(t).Return()
}

// What the last claim saw came from a server that may be another one after the session was lost.
func TestAnnouncementThatTheLastClaimSawIsNoReasonToLookUntilTheSessionIsNew(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.listen(t)
	e.awaitUp(t)
	pid := receive(t, "the session", e.pids)
	e.Bell.Saw("900:1000:")
	e.exec(t, "select pg_notify($1, 'x999')", channel)
	e.exec(t, "select pg_notify($1, 'x1000')", channel) // which it did not see
	if got := receive(t, "a wake-up", e.Bell.C()); got != Notified {
		t.Errorf("got %q, want %q", got, Notified)
	}
	if got := rung(e.Bell); got != "" {
		t.Errorf("got %q, want one wake-up: what was seen needs no look", got)
	}
	e.exec(t, "select pg_terminate_backend($1)", int(pid))
	if err := e.change(t); err == nil {
		t.Fatal("got no change, want the session lost")
	}
	e.awaitUp(t)
	e.exec(t, "select pg_notify($1, 'x999')", channel)
	if got := receive(t, "a wake-up", e.Bell.C()); got != Notified {
		t.Errorf("after a new session: got %q, want %q", got, Notified)
	}
}
