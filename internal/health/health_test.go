package health_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mafesoftware/outbox-relay/internal/health"
	"github.com/mafesoftware/outbox-relay/relay"
)

var errAway = errors.New("dial tcp 10.0.0.7:5432: connection refused")

// well is a relay that has started.
func well(h *health.Health) relay.Observer {
	o := h.Observer("turnos")
	o.Claim(relay.Claim{})
	o.Listening(nil)
	o.Turn(time.Hour)
	return o
}

func want(t *testing.T, h *health.Health, ready bool, parts ...string) {
	t.Helper()
	got, report := h.Ready()
	if got != ready {
		t.Errorf("got ready %v (%q), want %v", got, report, ready)
	}
	for _, part := range parts {
		if !strings.Contains(report, part) {
			t.Errorf("got %q, want it to say %q", report, part)
		}
	}
}

func TestARelayIsReadyOnceItHasClaimedAndHears(t *testing.T) {
	t.Parallel()
	h := health.New(health.Options{})
	o := h.Observer("turnos")
	want(t, h, false, "outbox turnos: starting")
	o.DatabaseError(errAway)
	want(t, h, false, "starting", "no answer")
	o.Claim(relay.Claim{})
	want(t, h, false, "no notifications")
	o.Listening(nil)
	want(t, h, true, "outbox turnos: ready")
}

func TestAShortOutageIsForgivenAndALongOneNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := health.New(health.Options{})
		o := well(h)
		for range 30 {
			o.DatabaseError(&pgconn.PgError{Code: "57P03"})
			time.Sleep(time.Second)
		}
		want(t, h, true)
		o.DatabaseError(&pgconn.PgError{Code: "57P03"})
		time.Sleep(time.Second)
		o.DatabaseError(&pgconn.PgError{Code: "57P03"})
		want(t, h, false, "failing for 31s", "57P03")
		o.Claim(relay.Claim{})
		want(t, h, true)
		// A failure that nothing follows, on a relay that has nothing to do, is no outage.
		o.DatabaseError(&pgconn.PgError{Code: "55P03"})
		time.Sleep(10 * time.Minute)
		want(t, h, true)
	})
}

func TestAResultThatIsWrittenEndsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := health.New(health.Options{Tolerance: time.Second})
		o := well(h)
		o.DatabaseError(errAway)
		time.Sleep(2 * time.Second)
		o.DatabaseError(errAway)
		o.Recorded(relay.Recorded{Outcome: relay.Errored})
		want(t, h, false)
		o.Recorded(relay.Recorded{Outcome: relay.Sent})
		want(t, h, true)
	})
}

func TestAnErrorsTextIsNotShown(t *testing.T) {
	t.Parallel()
	h := health.New(health.Options{})
	h.Observer("turnos").DatabaseError(errAway)
	if _, report := h.Ready(); strings.Contains(report, "10.0.0.7") {
		t.Errorf("the address of the database is in %q", report)
	}
}

func TestNotificationsMayBeAwayForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		strict, polls := health.New(health.Options{}), health.New(health.Options{PollOnly: true})
		a, b := well(strict), well(polls)
		for _, o := range []relay.Observer{a, b} {
			o.Listening(errAway)
		}
		time.Sleep(20 * time.Second)
		a.Listening(errAway) // another attempt does not begin the time anew
		time.Sleep(9 * time.Second)
		want(t, strict, true)
		time.Sleep(2 * time.Second)
		want(t, strict, false, "no notifications for 31s", "relay doctor")
		want(t, polls, true)
		a.Listening(nil)
		want(t, strict, true)
	})
}

func TestALoopThatDoesNotGoRoundIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := health.New(health.Options{})
		o := well(h) // its next turn comes within an hour
		time.Sleep(time.Hour + 30*time.Second)
		want(t, h, true)
		time.Sleep(time.Second)
		want(t, h, false, "31s late")
		o.Turn(5 * time.Second)
		want(t, h, true)
	})
}

func TestATableThatIsMissingIsNotForgiven(t *testing.T) {
	t.Parallel()
	h := health.New(health.Options{Tolerance: time.Hour})
	o := well(h)
	failed := &pgconn.PgError{Code: "42P01"}
	o.DatabaseError(failed)
	o.Claim(relay.Claim{Err: failed})
	want(t, h, false, "42P01", "run relay migrate")
	o.Claim(relay.Claim{})
	want(t, h, true)
}

func TestAProcessThatStopsIsNotReady(t *testing.T) {
	t.Parallel()
	h := health.New(health.Options{})
	well(h)
	h.Stop()
	want(t, h, false, "stopping")
}

func TestOneOfSeveralRelaysIsEnoughToBeNotReady(t *testing.T) {
	t.Parallel()
	h := health.New(health.Options{})
	well(h)
	h.Observer("cobros")
	want(t, h, false, "outbox turnos: ready\n", "outbox cobros: starting")
}
