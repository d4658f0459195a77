package notify

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	channel  = "outbox_test"
	patience = 30 * time.Second
	// atOnce is what a machine that stands still now and then may need for something that waits for nothing.
	atOnce = 5 * time.Second
)

// ear is a Listener under test and what it tells.
type ear struct {
	*Listener
	pool    *pgxpool.Pool
	changes chan error // what Changed heard
	log     *logText
	pids    chan uint32 // the server process of each session that was dialled
	// prepare may change the connection of a session before it is dialled.
	prepare atomic.Pointer[func(*pgx.ConnConfig)]
}

// newEar is a listener on a database of its own, not yet running. It answers within five seconds or is dead.
func newEar(t *testing.T) *ear {
	t.Helper()
	e := &ear{pool: pgtest.Pool(t), changes: make(chan error, 1000), log: &logText{}, pids: make(chan uint32, 1000)}
	e.Listener = &Listener{
		Bell:    NewBell(),
		Channel: channel,
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			config := e.pool.Config().ConnConfig
			if prepare := e.prepare.Load(); prepare != nil {
				(*prepare)(config)
			}
			conn, err := pgx.ConnectConfig(ctx, config)
			if err == nil {
				e.pids <- conn.PgConn().PID()
			}
			return conn, err
		},
		Notify: func(ctx context.Context, payload string) error {
			_, err := e.pool.Exec(ctx, "select pg_notify($1, $2)", channel, payload)
			return err
		},
		ProbeInterval: 200 * time.Millisecond,
		ProbeTimeout:  5 * time.Second,
		Changed:       func(err error) { e.changes <- err },
		Log:           slog.New(slog.NewTextHandler(e.log, nil)),
	}
	return e
}

// listen runs it until the test ends.
func (e *ear) listen(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := receive(t, "Run to return", done); err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
	})
}

// change waits for the next call of Changed.
func (e *ear) change(t *testing.T) error {
	t.Helper()
	return receive(t, "a change", e.changes)
}

// awaitUp waits until notifications are proven to arrive, and empties the bell.
func (e *ear) awaitUp(t *testing.T) {
	t.Helper()
	if err := e.change(t); err != nil {
		t.Fatalf("got %v, want to hear that notifications arrive", err)
	}
	if !e.Up() {
		t.Fatal("Up: got false, want true once a probe has come back")
	}
	if got := receive(t, "the look after LISTEN", e.Bell.C()); got != Listen {
		t.Fatalf("got wake-up %q, want %q", got, Listen)
	}
}

func (e *ear) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := e.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// frozenConn reads, and drops what it reads once it is frozen: the client of a session that is gone.
type frozenConn struct {
	net.Conn
	frozen *atomic.Bool
	wrote  func([]byte)
}

func (c frozenConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.frozen.Load() {
			return n, err
		}
	}
}

func (c frozenConn) Write(p []byte) (int, error) {
	if c.wrote != nil {
		c.wrote(p)
	}
	return c.Conn.Write(p)
}

// freezable makes the sessions that are dialled from now on freezable.
func (e *ear) freezable(frozen *atomic.Bool, wrote func([]byte)) {
	prepare := func(config *pgx.ConnConfig) {
		dial := config.DialFunc
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return frozenConn{conn, frozen, wrote}, nil
		}
	}
	e.prepare.Store(&prepare)
}

type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func receive[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	return v
}

// hear is what the listener does with an announcement.
func hear(b *Bell, payload string) {
	if b.announced(payload) {
		b.ring(Notified)
	}
}
