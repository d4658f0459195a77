package notify

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
)

func TestNotificationsRingTheBell(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.ProbeInterval = time.Hour
	e.listen(t)
	e.awaitUp(t)
	e.exec(t, "select pg_notify($1, '')", channel)
	if got := receive(t, "a wake-up", e.Bell.C()); got != Notified {
		t.Errorf("got %q, want %q", got, Notified)
	}
	e.Bell.SetNext(noon)
	e.exec(t, "select pg_notify($1, $2)", channel, milliseconds(noon.Add(-time.Minute)))
	if got := receive(t, "a wake-up", e.Bell.C()); got != Schedule {
		t.Errorf("got %q, want %q", got, Schedule)
	}
}

func TestProbesAreHeardByNobodyElse(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.listen(t)
	e.awaitUp(t)
	probes := make(chan struct{}, 100)
	other := newEar(t)
	other.pool, other.Log = e.pool, e.Log
	notify := other.Notify
	other.Notify = func(ctx context.Context, payload string) error {
		err := notify(ctx, payload)
		signal(probes)
		return err
	}
	other.ProbeInterval = 10 * time.Millisecond
	other.listen(t)
	other.awaitUp(t)
	for range 20 {
		receive(t, "a probe", probes)
	}
	if got := rung(e.Bell); got != "" {
		t.Errorf("got woken by %q, want no wake-up from the probes of another relay", got)
	}
}

func TestKilledSessionIsReplacedAtOnceEachTime(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.listen(t)
	e.awaitUp(t)
	pid := receive(t, "a session", e.pids)
	var took []time.Duration
	for range 10 { // more than the pauses between failed attempts need to become long
		killed := time.Now()
		e.exec(t, "select pg_terminate_backend($1)", int32(pid))
		if err := e.change(t); err == nil {
			t.Fatal("got told that notifications arrive, want that the session is lost")
		}
		next := receive(t, "a new session", e.pids)
		e.awaitUp(t) // with a look for what was committed meanwhile
		if next == pid {
			t.Fatal("got the same session again, want a new one")
		}
		took = append(took, time.Since(killed))
		e.exec(t, "select pg_notify($1, '')", channel)
		if got := receive(t, "a wake-up", e.Bell.C()); got != Notified {
			t.Errorf("got %q, want %q", got, Notified)
		}
		pid = next
	}
	// Had they become long, each of the last ones would have taken 2.5 s; one alone may have met a machine that stood still.
	if last := took[7:]; slices.Min(last) > 2*time.Second {
		t.Errorf("got back after %v, want at once", last)
	}
}

// The server's end is gone, the client's is open, and nothing ever comes.
func TestSilentSessionIsFoundAndReplaced(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	var frozen atomic.Bool
	e.freezable(&frozen, nil)
	e.listen(t)
	e.awaitUp(t)
	e.prepare.Store(nil) // the next one is sound
	frozen.Store(true)
	since := time.Now()
	if err := e.change(t); err == nil {
		t.Fatal("got told that notifications arrive, want that the session is lost")
	}
	if took := time.Since(since); took > e.ProbeInterval+e.ProbeTimeout+atOnce {
		t.Errorf("got found after %v, want %v and a little at most", took, e.ProbeInterval+e.ProbeTimeout)
	}
	e.awaitUp(t)
	e.exec(t, "select pg_notify($1, '')", channel)
	if got := receive(t, "a wake-up", e.Bell.C()); got != Notified {
		t.Errorf("got %q, want %q", got, Notified)
	}
}

// A link that goes silent before LISTEN is confirmed is not a session yet that a probe could prove.
func TestListenThatIsNotAnsweredIsGivenUp(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	var frozen atomic.Bool
	e.freezable(&frozen, func(p []byte) {
		if bytes.Contains(p, []byte("listen \"")) {
			frozen.Store(true)
			e.prepare.Store(nil)
		}
	})
	e.listen(t)
	since := time.Now()
	if err := e.change(t); err == nil {
		t.Fatal("got told that notifications arrive, want that the session is lost")
	}
	if took := time.Since(since); took > e.ProbeTimeout+atOnce {
		t.Errorf("got given up after %v, want %v and a little at most", took, e.ProbeTimeout)
	}
	e.awaitUp(t)
}

// As through a pooler in transaction mode: LISTEN is accepted, and the notification goes to another session. That the
// probes of another relay arrive proves nothing: the pool may be connected to another server than the listener.
func TestDeafSessionIsExplainedOnce(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.ProbeTimeout = 500 * time.Millisecond
	notify := e.Notify
	e.Notify = func(ctx context.Context, payload string) error { return notify(ctx, payload+" of another relay") }
	var dialled atomic.Int32
	prepare := func(config *pgx.ConnConfig) {
		if dialled.Add(1) == 2 {
			config.Host, config.Fallbacks = "/nowhere", nil // the attempt fails
		}
	}
	e.prepare.Store(&prepare)
	e.listen(t)
	for err := e.change(t); !errors.Is(err, errDeaf); err = e.change(t) { // LISTEN itself may be late
		if err == nil {
			t.Fatal("got told that notifications arrive, want why they do not")
		}
	}
	lines := e.log.count("\n")
	for range len(e.pids) + 3 {
		receive(t, "another try", e.pids)
	}
	if got := e.log.count("ListenDSN"); got != 1 {
		t.Errorf("got %d lines that name ListenDSN, want 1", got)
	}
	if got := e.log.count("\n") - lines; got != 0 {
		t.Errorf("got %d more lines in the log, want none", got)
	}
	if e.Up() || len(e.changes) > 0 {
		t.Errorf("got Up %v and %d more changes, want false and none", e.Up(), len(e.changes))
	}
}

func TestSessionIsIdleAndHoldsNoSnapshot(t *testing.T) {
	t.Parallel()
	e := newEar(t)
	e.listen(t)
	e.awaitUp(t)
	var state, name string
	var snapshot, transaction *uint32
	pid := receive(t, "a session", e.pids)
	ask := "select state, application_name, backend_xmin, backend_xid from pg_stat_activity where pid = $1"
	waitfor.True(t, "a session that is idle between two probes, without xmin and xid", func() bool {
		if err := e.pool.QueryRow(t.Context(), ask, int32(pid)).Scan(&state, &name, &snapshot, &transaction); err != nil {
			t.Fatal(err)
		}
		return state == "idle" && snapshot == nil && transaction == nil
	})
	if name != "outbox relay: listen" {
		t.Errorf("got application_name %q, want one that says what it is", name)
	}
}

func TestNothingIsLeftWhenRunReturns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  error
	}{{"cancelled", context.Canceled}, {"past its deadline", context.DeadlineExceeded}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := newEar(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- e.Run(ended{ctx, test.end}) }()
			e.awaitUp(t)
			pid := receive(t, "a session", e.pids)
			cancel()
			if err := receive(t, "Run to return", done); err != nil {
				t.Errorf("got %v, want nil", err)
			}
			if len(e.changes) > 0 || e.log.count("WARN") > 0 {
				t.Error("got told of a lost session, want no word about an end that was asked for")
			}
			waitfor.True(t, "the session to be gone", func() bool {
				var n int
				if err := e.pool.QueryRow(t.Context(), "select count(*) from pg_stat_activity where pid = $1", int32(pid)).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n == 0
			})
		})
	}
}

// ended is a context with another reason for its end.
type ended struct {
	context.Context
	err error
}

func (e ended) Err() error {
	if e.Context.Err() == nil {
		return nil
	}
	return e.err
}
