package health_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/mafesoftware/outbox-relay/internal/health"
	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const patience = 60 * time.Second

// site is a served health.
type site string

func serve(t *testing.T, h *health.Health, profiles health.Profiles) site {
	t.Helper()
	l, err := health.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewBuildInfoCollector())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- health.Serve(ctx, l, health.Handler(h, registry, profiles)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return site("http://" + l.Addr().String())
}

func (s site) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, string(s)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// reaches waits until /readyz has a status and says something.
func (s site) reaches(t *testing.T, want int, says string) {
	t.Helper()
	var status int
	var body string
	if !waitfor.Within(patience, func() bool {
		status, body = s.get(t, "/readyz")
		return status == want && strings.Contains(body, says)
	}) {
		t.Fatalf("got %d %q, want %d and %q within %v", status, body, want, says, patience)
	}
}

func TestWhatIsServed(t *testing.T) {
	t.Parallel()
	h := health.New(health.Options{})
	plain, profiled := serve(t, h, health.NoProfiles), serve(t, h, health.WithProfiles)
	for _, test := range []struct {
		site   site
		path   string
		status int
		says   string
	}{
		{plain, "/healthz", 200, "ok"},
		{plain, "/readyz", 200, ""}, // a process without relays
		{plain, "/metrics", 200, "go_build_info"},
		{plain, "/debug/pprof/", 404, ""},
		{plain, "/debug/pprof/heap", 404, ""},
		{plain, "/", 404, ""},
		{profiled, "/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{profiled, "/debug/pprof/", 200, "heap"},
	} {
		status, body := test.site.get(t, test.path)
		if status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: got %d %q, want %d and %q", test.path, status, body, test.status, test.says)
		}
	}
	response, err := http.Post(string(plain)+"/healthz", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /healthz: got %d, want 405", response.StatusCode)
	}
}

func TestATakenAddressIsAClearError(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, err = health.Listen(t.Context(), address)
	if err == nil || !strings.Contains(err.Error(), "another process has the address "+address) {
		t.Errorf("got %v, want that another process has the address", err)
	}
	if _, err = health.Listen(t.Context(), "9090"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v for an address without a host, want an error of one line", err)
	}
}

// run has a relay at work until stop is called or the test ends.
func run(t *testing.T, pool *pgxpool.Pool, o relay.Observer, opts relay.Options) (stop func()) {
	t.Helper()
	opts.Observer, opts.Log = o, slog.New(slog.DiscardHandler)
	senders := relay.Senders{"correo": transporte.Func(func(context.Context, transporte.Message) (string, error) { return "", nil })}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx, pool, outbox.Table{}, senders, opts) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func newPool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	err = pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func TestReadinessFollowsADatabaseThatGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, localpg.Options{})
	pool := newPool(t, server.DSN())
	h := health.New(health.Options{Tolerance: 500 * time.Millisecond})
	s := serve(t, h, health.NoProfiles)
	run(t, pool, h.Observer("turnos"), relay.Options{})
	s.reaches(t, http.StatusOK, "outbox turnos: ready")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	s.reaches(t, http.StatusServiceUnavailable, "the database has been failing")
	if status, _ := s.get(t, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: got %d while the database is away, want 200: a restart would not help", status)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.reaches(t, http.StatusOK, "outbox turnos: ready")
}

func TestALostListenerIsForgiven(t *testing.T) {
	t.Parallel()
	pool := newPool(t, pgtest.Database(t))
	h := health.New(health.Options{Tolerance: time.Hour})
	s := serve(t, h, health.NoProfiles)
	lost, back := make(chan struct{}, 10), make(chan struct{}, 10)
	var ready atomic.Bool
	run(t, pool, relay.Join(h.Observer("turnos"), relay.Observer{Listening: func(err error) {
		if err == nil {
			back <- struct{}{}
			return
		}
		// The relay waits for this function: it is as long without a listener as the answer takes.
		if status, body := s.get(t, "/readyz"); ready.Load() && status != http.StatusOK {
			t.Errorf("got %d %q just after the listener was lost, want it forgiven", status, body)
		}
		lost <- struct{}{}
	}}), relay.Options{})
	s.reaches(t, http.StatusOK, "ready")
	ready.Store(true)
	wait(t, back)
	if _, err := pool.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outbox relay: listen' and datname = current_database()"); err != nil {
		t.Fatal(err)
	}
	wait(t, lost)
	wait(t, back)
	s.reaches(t, http.StatusOK, "ready")
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("did not happen within %v", patience)
	}
}

func TestReadinessFollowsTheTable(t *testing.T) {
	t.Parallel()
	pool := newPool(t, pgtest.Database(t))
	h := health.New(health.Options{Tolerance: time.Hour})
	s := serve(t, h, health.NoProfiles)
	run(t, pool, h.Observer("turnos"), relay.Options{PollInterval: 10 * time.Millisecond})
	s.reaches(t, http.StatusOK, "ready")
	for _, step := range []struct{ hurt, mend string }{
		{"alter table outbox rename to away", "alter table away rename to outbox"},
		{"alter table outbox rename column intentos to tries", "alter table outbox rename column tries to intentos"}, // an older form
	} {
		if _, err := pool.Exec(t.Context(), step.hurt); err != nil {
			t.Fatal(err)
		}
		s.reaches(t, http.StatusServiceUnavailable, "run relay migrate")
		if _, err := pool.Exec(t.Context(), step.mend); err != nil {
			t.Fatal(err)
		}
		s.reaches(t, http.StatusOK, "ready")
	}
}

func TestALoopThatIsStuckIsSeen(t *testing.T) {
	t.Parallel()
	pool := newPool(t, pgtest.Database(t))
	h := health.New(health.Options{Tolerance: 300 * time.Millisecond})
	s := serve(t, h, health.NoProfiles)
	stuck, free := make(chan struct{}), make(chan struct{})
	run(t, pool, relay.Join(h.Observer("turnos"), relay.Observer{Claim: func(relay.Claim) {
		select {
		case <-stuck:
			<-free // the loop itself waits here
		default:
		}
	}}), relay.Options{PollInterval: 100 * time.Millisecond})
	s.reaches(t, http.StatusOK, "ready")
	close(stuck)
	s.reaches(t, http.StatusServiceUnavailable, "the loop is")
	close(free)
	s.reaches(t, http.StatusOK, "ready")
}
