package relay_test

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// fields are columns of a row with the SQL of their values.
type fields map[string]string

// database is one of the test's own, with an outbox.
type database struct{ *pgxpool.Pool }

func open(t *testing.T) database {
	t.Helper()
	pool := pgtest.Pool(t)
	migrateUp(t, pool)
	return database{pool}
}

func migrateUp(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
}

func (d database) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := d.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// add inserts a message that is due, but for what fields say, and gives its id.
func (d database) add(t *testing.T, with fields) string {
	t.Helper()
	all := fields{"organizacion_id": "'6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f'", "canal": "'correo'", "destino": "'ana@example.com'",
		"plantilla": "'aviso'", "clave_idempotencia": "gen_random_uuid()::text"}
	maps.Copy(all, with)
	names := slices.Sorted(maps.Keys(all))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = all[name]
	}
	var id string
	err := d.QueryRow(t.Context(), "insert into outbox ("+strings.Join(names, ", ")+") values ("+strings.Join(values, ", ")+") returning id::text").Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// addMany inserts n messages that are due, in one transaction.
func (d database) addMany(t *testing.T, n int) {
	t.Helper()
	d.exec(t, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia)
		select gen_random_uuid(), 'correo', 'ana@example.com', 'aviso', gen_random_uuid()::text from generate_series(1, $1)`, n)
}

// wantRow checks a condition on a row.
func (d database) wantRow(t *testing.T, id, condition string) {
	t.Helper()
	var holds *bool
	var row string
	err := d.QueryRow(t.Context(), "select "+condition+", to_jsonb(o)::text from outbox o where id = $1::uuid", id).Scan(&holds, &row)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	if holds == nil || !*holds {
		t.Errorf("got %s, want %s", row, condition)
	}
}

// count gives the number of rows for which a condition holds.
func (d database) count(t *testing.T, condition string) int {
	t.Helper()
	var n int
	if err := d.QueryRow(t.Context(), "select count(*) from outbox where "+condition).Scan(&n); err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return n
}

func (d database) wantCount(t *testing.T, condition string, want int) {
	t.Helper()
	if got := d.count(t, condition); got != want {
		t.Errorf("%s: got %d rows, want %d", condition, got, want)
	}
}

// runOnce sends a batch of correo.
func (d database) runOnce(t *testing.T, send transporte.Func, opts relay.Options) relay.Summary {
	t.Helper()
	opts.Log = cmp.Or(opts.Log, silent)
	ended := make(chan relay.Summary, 1)
	go func() {
		summary, err := relay.RunOnce(t.Context(), d.Pool, outbox.Table{}, relay.Senders{"correo": send}, opts)
		if err != nil {
			t.Error(err)
		}
		ended <- summary
	}()
	return receive(t, ended, "the end of RunOnce")
}

// start runs a relay for correo until stop is called or the test ends.
func (d database) start(t *testing.T, send transporte.Func, opts relay.Options) (stop func()) {
	t.Helper()
	opts.Log = cmp.Or(opts.Log, silent)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": send}, opts) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: got %v, want nil", err)
			}
		case <-time.After(patience):
			t.Errorf("Run did not end within %v", patience)
		}
	})
	t.Cleanup(stop)
	return stop
}

// silent is the log of tests that do not look at it.
var silent = slog.New(slog.DiscardHandler)

// listen hears, as the relays do, when a payload is sent to them.
func (d database) listen(t *testing.T, payload string) <-chan struct{} {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), d.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "listen "+outbox.Table{}.Channel()); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer conn.Close(context.Background())
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				return
			}
			if n.Payload == payload {
				close(heard)
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return heard
}

// receive waits for what a channel gives.
func receive[T any](t *testing.T, c <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: did not come within %v", what, patience)
	}
	return value
}

// receiver is a destination that counts what arrives.
type receiver struct {
	mu    sync.Mutex
	times map[string]int // by the row's id
}

func (r *receiver) Send(_ context.Context, m transporte.Message) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = make(map[string]int)
	}
	r.times[m.ID]++
	return "ext-" + m.ID, nil
}

func (r *receiver) arrived() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

// wantEachOnce checks that n messages have arrived, none of them twice.
func (r *receiver) wantEachOnce(t *testing.T, n int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.times) != n {
		t.Errorf("%d messages arrived, want %d", len(r.times), n)
	}
	for id, times := range r.times {
		if times != 1 {
			t.Errorf("message %s arrived %d times", id, times)
		}
	}
}

func sent(context.Context, transporte.Message) (string, error) { return "", nil }
