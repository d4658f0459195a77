package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

// slowReceiver takes webhooks and answers when it is let.
func slowReceiver(t *testing.T) (url string, arrived chan struct{}, let chan struct{}) {
	t.Helper()
	arrived, let = make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-let:
		case <-r.Context().Done(): // a test that has failed lets nothing
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, arrived, let
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("nothing arrived within %v", patience)
	}
}

func TestASignalInTheMiddleOfASendLetsItFinish(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := migrated(t, dsn)
	url, arrived, let := slowReceiver(t)
	p := startRelay(t, dsn, webhooks(""))
	p.answers(t, "/readyz", http.StatusOK, "outbox turnos: ready")
	insert(t, conn, url, "", "")
	await(t, arrived)
	p.answers(t, "/metrics", http.StatusOK, `outbox_sends_in_flight{channel="webhook",outbox="turnos"} 1`)
	p.signal(t, syscall.SIGTERM)
	p.answers(t, "/readyz", http.StatusServiceUnavailable, "stopping")
	p.answers(t, "/healthz", http.StatusOK, "ok")
	wantState(t, conn, "procesando")
	close(let)
	if state := p.end(t); state.ExitCode() != 0 {
		t.Errorf("got %v, want exit code 0: %v", state, p.lines())
	}
	wantState(t, conn, "enviado")
}

func TestASecondSignalEndsARelayAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := migrated(t, dsn)
	url, arrived, let := slowReceiver(t)
	defer close(let)
	p := startRelay(t, dsn, webhooks(""))
	insert(t, conn, url, "", "")
	await(t, arrived)
	p.signal(t, syscall.SIGTERM)
	p.answers(t, "/readyz", http.StatusServiceUnavailable, "stopping")
	p.signal(t, syscall.SIGTERM)
	if status := p.end(t).Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want it ended by the signal", status)
	}
	wantState(t, conn, "procesando") // it is sent again when its lease ends
}

func TestAnOutageOfTheDatabaseMakesARelayNotReadyAndNotDead(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, localpg.Options{})
	conn := migrated(t, server.DSN())
	url, arrived, let := slowReceiver(t)
	close(let)
	p := startRelay(t, server.DSN(), "http: {tolerance: 200ms}\n"+webhooks(""))
	p.answers(t, "/readyz", http.StatusOK, "ready")
	p.answers(t, "/metrics", http.StatusOK, `outbox_table_query_success{outbox="turnos"} 1`)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	p.answers(t, "/readyz", http.StatusServiceUnavailable, "the database has been failing")
	p.answers(t, "/healthz", http.StatusOK, "ok")
	p.answers(t, "/metrics", http.StatusOK, `outbox_listener_up{outbox="turnos"} 0`)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.answers(t, "/readyz", http.StatusOK, "ready")
	_ = conn.Close(t.Context())
	insert(t, migrated(t, server.DSN()), url, "", "")
	await(t, arrived)
	p.answers(t, "/metrics", http.StatusOK, `outbox_messages_total{channel="webhook",outbox="turnos",outcome="sent"} 1`)
	p.signal(t, syscall.SIGTERM)
	if state := p.end(t); state.ExitCode() != 0 {
		t.Errorf("got %v, want exit code 0", state)
	}
}

func TestAnAddressThatIsTakenRefusesToStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dsn := pgtest.Database(t)
	conn := migrated(t, dsn)
	insert(t, conn, "http://127.0.0.1:1/", "", "")
	var stderr strings.Builder
	args := []string{"run", "--print", "webhook", "--http-address", taken.Addr().String()}
	if code := command(t.Context(), args, environment(dsn), nil, &stderr, &stderr); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	if got := stderr.String(); !strings.Contains(got, "another process has the address "+taken.Addr().String()) || !strings.Contains(got, "--http-address") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want one line that names the address and the option", got)
	}
	wantState(t, conn, "pendiente")
}

func TestRetentionDeletesWhatIsOld(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	conn := migrated(t, dsn)
	insert(t, conn, "old", ", estado, actualizado_en", ", 'enviado', now() - interval '31 days'")
	insert(t, conn, "young", ", estado, actualizado_en", ", 'enviado', now() - interval '29 days'")
	insert(t, conn, "kept", ", estado, actualizado_en", ", 'fallido', now() - interval '1000 days'")
	p := startRelay(t, dsn, webhooks("retention: {enviado: 30d}"))
	p.answers(t, "/metrics", http.StatusOK, `outbox_purged_messages_total{outbox="turnos"} 1`)
	var left string
	if err := conn.QueryRow(t.Context(), "select string_agg(destino, ' ' order by destino) from outbox").Scan(&left); err != nil || left != "kept young" {
		t.Errorf("got %q, %v, want kept young", left, err)
	}
	p.signal(t, syscall.SIGTERM)
	if state := p.end(t); state.ExitCode() != 0 {
		t.Errorf("got %v, want exit code 0", state)
	}
}

func TestProfilesAreServedOnDemandOnly(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	migrated(t, dsn)
	startRelay(t, dsn, webhooks("")).answers(t, "/debug/pprof/", http.StatusNotFound, "")
	startRelay(t, dsn, "http: {pprof: true}\n"+webhooks("")).answers(t, "/debug/pprof/", http.StatusOK, "goroutine")
}
