package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shortLoad has duplicates, unknown templates, an organization without WhatsApp, and meets every fault of the provider.
func shortLoad(t *testing.T) load {
	t.Helper()
	bookings, err := readBookings(bookingsCSV)
	if err != nil {
		t.Fatal(err)
	}
	return load{bookings: bookings[:60], pause: 10 * time.Millisecond, remindIn: 500 * time.Millisecond}
}

var lastLine = regexp.MustCompile(`\ndemo: sent (\d+) of (\d+), commit to send p50 \d+\.\d\d ms p99 \d+\.\d\d ms, ` +
	`scheduled late p50 \d+\.\d\d ms p99 \d+\.\d\d ms\n$`)

func TestDemoSendsWhatCanBeSentAndSaysSoInItsLastLine(t *testing.T) {
	t.Parallel()
	woken, polled := pgtest.Database(t), pgtest.Database(t)
	var out bytes.Buffer
	if err := demo(t.Context(), woken, polled, shortLoad(t), &out); err != nil {
		t.Fatalf("%v, after:\n%s", err, &out)
	}
	last := lastLine.FindStringSubmatch(out.String())
	if last == nil {
		t.Fatalf("the last line has another form:\n%s", &out)
	}
	for _, dsn := range []string{woken, polled} {
		pool := poolOf(t, dsn)
		sent, discarded := count(t, pool, "outbox where estado = 'enviado'"), count(t, pool, "outbox where estado = 'descartado'")
		if last[1] != strconv.Itoa(sent) || last[2] != last[1] {
			t.Errorf("got sent %s of %s, want %d as in the table of both", last[1], last[2], sent)
		}
		if all := count(t, pool, "outbox"); sent == 0 || discarded == 0 || sent+discarded != all {
			t.Errorf("the table has %d messages, %d of them sent and %d discarded, want some of both and no others", all, sent, discarded)
		}
	}
}

func TestDemoShowsEveryKindOfResultAndNoRecipient(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := shortLoad(t)
	r, err := measure(t.Context(), pgtest.Database(t), serve, l, &out)
	if err != nil {
		t.Fatal(err)
	}
	shown := out.String()
	for _, parts := range [][2]string{
		{"ms after commit", "sent"}, {"ms late", "sent"}, {"attempt 2", "sent"},
		{"again in ", "limite (rate_limit_exceeded)"}, {"again in ", "red (500)"}, {"again in ", "red (timeout)"},
		{"turno_navidad", "discarded: plantilla (132001)"}, {"whatsapp", "discarded: credenciales (sin_credenciales)"},
	} {
		pattern := regexp.QuoteMeta(parts[0]) + ".*" + regexp.QuoteMeta(parts[1]) + "\n"
		if !regexp.MustCompile(pattern).MatchString(shown) {
			t.Errorf("no line has %q and ends in %q:\n%s", parts[0], parts[1], shown)
		}
	}
	if want := r.sent + sum(r.retries) + sum(r.discarded); strings.Count(shown, "\n") != want {
		t.Errorf("got %d lines, want one for each of %d results", strings.Count(shown, "\n"), want)
	}
	if r.repeated == 0 || r.twice != 0 {
		t.Errorf("got %d repeated after no answer and %d twice for no reason, want some and none", r.repeated, r.twice)
	}
	for _, b := range l.bookings {
		if strings.Contains(shown, b.Phone) || strings.Contains(shown, b.Email) {
			t.Fatalf("the recipient of %s is shown in full", b.ID)
		}
	}
}

func TestInterruptedDemoFailsAndRecordsWhatIsBeingSent(t *testing.T) {
	t.Parallel()
	l := shortLoad(t)
	unanswered := slices.IndexFunc(l.bookings, func(b Booking) bool {
		return canBeSent(b.confirmation()) && fateOf(b.Tenant+":confirmacion/"+b.ID, 1) == lost
	})
	l.bookings = append([]Booking{l.bookings[unanswered]}, l.bookings...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	woken, polled := pgtest.Database(t), pgtest.Database(t)
	// The first message waits for its answer when a later one has been sent.
	if err := demo(ctx, woken, polled, l, interrupter{after: " sent\n", interrupt: cancel}); err == nil {
		t.Error("got no error, want one that makes the command fail")
	}
	pool := poolOf(t, woken)
	if n := count(t, pool, "outbox where estado = 'procesando'"); n != 0 {
		t.Errorf("%d messages are still under a lease", n)
	}
	if n := count(t, pool, "outbox where ultimo_error_codigo = 'timeout'"); n == 0 {
		t.Error("the message that was being sent has no result")
	}
}

// interrupter interrupts when something is written.
type interrupter struct {
	after     string
	interrupt func()
}

func (i interrupter) Write(p []byte) (int, error) {
	if strings.HasSuffix(string(p), i.after) {
		i.interrupt()
	}
	return len(p), nil
}

func poolOf(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
