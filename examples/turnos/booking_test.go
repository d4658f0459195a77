package main

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

var ana = Booking{
	Tenant: "00000000-0000-4000-8000-000000000001", ID: "T-1", Name: "Ana", Phone: "+17875550100", Email: "ana@example.com",
	Starts: time.Date(2026, 12, 7, 9, 30, 0, 0, time.UTC), Template: "turno_confirmado", Reminder: "correo",
	RemindAt: time.Date(2026, 12, 6, 9, 30, 0, 0, time.UTC),
}

func preparedPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	for range 2 { // as at each start of the service
		if err := prepare(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select count(*) from "+query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBookingEnqueuesAConfirmationForNowAndAReminderForLater(t *testing.T) {
	t.Parallel()
	pool := preparedPool(t)
	created, err := Book(t.Context(), pool, table, ana)
	if err != nil || !created {
		t.Fatalf("got %v, %v, want it created", created, err)
	}
	for _, query := range []string{
		"turnos",
		"outbox where canal = 'whatsapp' and destino = '+17875550100' and plantilla = 'turno_confirmado' and programado_para <= now()",
		"outbox where canal = 'correo' and destino = 'ana@example.com' and programado_para = '2026-12-06 09:30Z'",
	} {
		if n := count(t, pool, query); n != 1 {
			t.Errorf("got %d of %s, want 1", n, query)
		}
	}
}

func TestBookingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	pool := preparedPool(t)
	for i, want := range []bool{true, false} {
		created, err := Book(t.Context(), pool, table, ana)
		if err != nil || created != want {
			t.Errorf("booking %d: got %v, %v, want %v", i+1, created, err, want)
		}
	}
	if n, m := count(t, pool, "turnos"), count(t, pool, "outbox"); n != 1 || m != 2 {
		t.Errorf("got %d appointments with %d messages, want 1 with 2", n, m)
	}
}

func TestBookingWhoseReminderCannotBeEnqueuedLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := preparedPool(t)
	b := ana
	b.Email = ""
	if _, err := Book(t.Context(), pool, table, b); !errors.Is(err, outbox.ErrInvalidOptions) {
		t.Errorf("got %v, want ErrInvalidOptions", err)
	}
	if n, m := count(t, pool, "turnos"), count(t, pool, "outbox"); n != 0 || m != 0 {
		t.Errorf("got %d appointments with %d messages, want neither", n, m)
	}
}
