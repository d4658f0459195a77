package retention_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/retention"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	patience = 30 * time.Second
	day      = 24 * time.Hour
)

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// add inserts n messages of a state that were last touched so long ago.
func add(t *testing.T, pool *pgxpool.Pool, n int, state outbox.State, ago time.Duration) {
	t.Helper()
	exec(t, pool, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado, actualizado_en, programado_para)
		select gen_random_uuid(), 'correo', 'ana@example.com', 'a', gen_random_uuid()::text, $1, now() - $2::interval, 'infinity' from generate_series(1, $3)`,
		string(state), ago, n)
}

func wantLeft(t *testing.T, pool *pgxpool.Pool, state outbox.State, want int) {
	t.Helper()
	var got int
	if err := pool.QueryRow(t.Context(), "select count(*) from outbox where estado = $1", string(state)).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%d messages are %s, want %d", got, state, want)
	}
}

// start runs retention until stop is called or the test ends, and gives its rounds. A look comes after a round and before the
// next one.
func start(t *testing.T, pool *pgxpool.Pool, policy retention.Policy, looks ...func(retention.Round)) (rounds <-chan retention.Round, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done, ended := make(chan retention.Round), make(chan error, 1)
	report := func(r retention.Round) {
		for _, look := range looks {
			look(r)
		}
		select {
		case done <- r:
		case <-ctx.Done():
		}
	}
	go func() {
		ended <- retention.Run(ctx, pool, outbox.Table{}, policy, retention.Options{Every: time.Second, Done: report})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
	})
	t.Cleanup(stop)
	return done, stop
}

func next(t *testing.T, rounds <-chan retention.Round) (r retention.Round) {
	t.Helper()
	select {
	case r = <-rounds:
	case <-time.After(patience):
		t.Fatalf("no round of retention within %v", patience)
	}
	return r
}

func TestEachStateIsKeptForItsOwnTime(t *testing.T) {
	t.Parallel()
	pool := open(t)
	add(t, pool, 3, outbox.Sent, 8*day)
	add(t, pool, 2, outbox.Sent, 6*day)
	add(t, pool, 4, outbox.Discarded, 8*day)
	add(t, pool, 1, outbox.Failed, 29*day)
	add(t, pool, 5, outbox.Failed, 31*day)
	add(t, pool, 6, outbox.Pending, 400*day)
	rounds, _ := start(t, pool, retention.Policy{outbox.Sent: 7 * day, outbox.Failed: 30 * day})
	if r := next(t, rounds); r.Err != nil || r.Skipped || r.Deleted != 8 {
		t.Errorf("got %+v, want 8 deleted", r)
	}
	wantLeft(t, pool, outbox.Sent, 2)
	wantLeft(t, pool, outbox.Discarded, 4)
	wantLeft(t, pool, outbox.Failed, 1)
	wantLeft(t, pool, outbox.Pending, 6)
	add(t, pool, 9, outbox.Sent, 8*day)
	if r := next(t, rounds); r.Err != nil || r.Skipped || r.Deleted != 9 {
		t.Errorf("got %+v in the second round, want 9 deleted", r)
	}
}

func TestOneDoesTheWorkUntilItEndsAndThenAnother(t *testing.T) {
	t.Parallel()
	pool := open(t)
	policy := retention.Policy{outbox.Sent: day}
	first, stop := start(t, pool, policy)
	if r := next(t, first); r.Skipped || r.Err != nil {
		t.Fatalf("got %+v of the only one, want a round that is done", r)
	}
	second, _ := start(t, pool, policy)
	for range 2 {
		if r := next(t, second); !r.Skipped || r.Err != nil {
			t.Errorf("got %+v of the second, want it to leave the work to the first", r)
		}
		if r := next(t, first); r.Skipped || r.Err != nil {
			t.Errorf("got %+v of the first, want it to go on", r)
		}
	}
	stop()
	add(t, pool, 1, outbox.Sent, 2*day)
	for {
		if r := next(t, second); !r.Skipped {
			if r.Deleted != 1 || r.Err != nil {
				t.Errorf("got %+v of the second once it is alone, want 1 deleted", r)
			}
			return
		}
	}
}

func TestFailuresOfTheDatabaseAreSurvived(t *testing.T) {
	t.Parallel()
	pool := open(t)
	add(t, pool, 1, outbox.Sent, 2*day)
	exec(t, pool, "alter table outbox rename to away")
	rounds, _ := start(t, pool, retention.Policy{outbox.Sent: day})
	if r := next(t, rounds); !errors.Is(r.Err, outbox.ErrSchema) {
		t.Errorf("got %+v without a table, want an error", r)
	}
	exec(t, pool, "alter table away rename to outbox")
	exec(t, pool, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outbox relay: retention' and datname = current_database()")
	for {
		r := next(t, rounds)
		if r.Deleted == 1 && r.Err == nil && !r.Skipped {
			return
		}
	}
}

func TestBehindAPoolerNoLockStaysBehind(t *testing.T) {
	t.Parallel()
	direct := open(t)
	config := direct.Config()
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return renumbered{conn}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	// Another one's transaction has the lock: it is respected.
	tx, err := direct.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	lock := outbox.Table{}.PurgeLock()
	if _, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock($1::int, $2::int)", lock.Class, lock.Key); err != nil {
		t.Fatal(err)
	}
	another := tx.Conn().PgConn().PID()
	rounds, stop := start(t, pool, retention.Policy{outbox.Sent: day}, func(retention.Round) {
		var held int
		err := direct.QueryRow(context.Background(), `select count(*) from pg_locks join pg_database d on d.oid = database
			where datname = current_database() and locktype = 'advisory' and classid::bigint = $1 and granted and pid <> $2`,
			int64(uint32(lock.Class)), another).Scan(&held)
		if err != nil || held != 0 {
			t.Errorf("got %d locks of the turn between the rounds, %v, want none", held, err)
		}
	})
	defer stop()
	if r := next(t, rounds); !r.Skipped || r.Err != nil {
		t.Errorf("got %+v while another one has the lock, want it skipped", r)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		r := next(t, rounds)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if !r.Skipped {
			break
		}
	}
}

// renumbered changes the number of the server's session in its greeting, as a pooler does.
type renumbered struct{ net.Conn }

func (c renumbered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if _, key, ok := bytes.Cut(p[:n], []byte{'K', 0, 0, 0, 12}); ok && len(key) > 3 {
		key[0] ^= 0x40
	}
	return n, err
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func() error{
		"no state": func() error {
			return retention.Run(t.Context(), nil, outbox.Table{}, nil, retention.Options{})
		},
		"a state that is not finished": func() error {
			return retention.Run(t.Context(), nil, outbox.Table{}, retention.Policy{outbox.Pending: day}, retention.Options{})
		},
		"30 without a unit": func() error {
			return retention.Run(t.Context(), nil, outbox.Table{}, retention.Policy{outbox.Sent: 30}, retention.Options{})
		},
		"too often": func() error {
			return retention.Run(t.Context(), nil, outbox.Table{}, retention.Policy{outbox.Sent: day}, retention.Options{Every: time.Millisecond})
		},
	} {
		if err := run(); !errors.Is(err, outbox.ErrInvalidOptions) {
			t.Errorf("%s: got %v, want ErrInvalidOptions", name, err)
		}
	}
}

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
	if err != nil {
		return
	}
	policy := retention.Policy{outbox.Sent: 30 * day, outbox.Failed: 90 * day}
	go retention.Run(ctx, pool, outbox.Table{}, policy, retention.Options{}) // beside relay.Run
}
