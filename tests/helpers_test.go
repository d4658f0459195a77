package tests

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const (
	// onlyWakeUps is a fallback poll that no test lives to see.
	onlyWakeUps = 10 * time.Minute
	// atOnce is far below that poll, and far above what a wake-up, a claim and a send take on a machine that stands still for
	// seconds now and then.
	atOnce = 10 * time.Second
	// patience is how long a test waits for what must come.
	patience = 30 * time.Second
)

// box is an outbox and the test's own way to it, past every proxy.
type box struct {
	table outbox.Table
	dsn   string
	pool  *pgxpool.Pool
}

// newBox makes an outbox in a database of its own.
func newBox(t *testing.T) *box {
	t.Helper()
	return newBoxIn(t, pgtest.Database(t), outbox.Table{})
}

func newBoxIn(t *testing.T, dsn string, table outbox.Table) *box {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := migrate.Up(t.Context(), conn, table); err != nil {
		t.Fatal(err)
	}
	return &box{table: table, dsn: dsn, pool: pgtest.PoolOn(t, dsn, nil)}
}

func (b *box) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), strings.ReplaceAll(statement, "OUTBOX", b.table.String()), args...); err != nil {
		t.Fatal(err)
	}
}

// count runs a query that gives a number.
func (b *box) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	if err := b.pool.QueryRow(t.Context(), strings.ReplaceAll(query, "OUTBOX", b.table.String()), args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func message() outbox.Message {
	return outbox.Message{TenantID: "00000000-0000-4000-8000-000000000001", Channel: "webhook", Destination: "https://example.com/hook",
		Template: "pedido.creado", IdempotencyKey: uuid.NewString()}
}

// enqueue commits one message.
func (b *box) enqueue(t *testing.T, m outbox.Message) (id string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		e, err := b.table.Enqueue(t.Context(), tx, m)
		id = e.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// fill commits n messages in one statement.
func (b *box) fill(t *testing.T, n int) {
	t.Helper()
	b.exec(t, insertMany, n)
}

const insertMany = `insert into OUTBOX (organizacion_id, canal, destino, plantilla, clave_idempotencia)
	select gen_random_uuid(), 'webhook', 'd', 'p', 'k' || i from generate_series(1, $1::integer) i`

// row reads what the table says of a message.
func (b *box) row(t *testing.T, id string) (state outbox.State, attempts int) {
	t.Helper()
	query := "select estado, intentos from " + b.table.String() + " where id = $1"
	if err := b.pool.QueryRow(t.Context(), query, id).Scan(&state, &attempts); err != nil {
		t.Fatal(err)
	}
	return state, attempts
}

// running is a relay.Run and what it said.
type running struct {
	*journal
	log  *logText
	stop func() // ends it and waits; may be called again
}

// run starts a relay on pool, whose observer it joins and whose log it takes over, and ends it with the test.
func (b *box) run(t *testing.T, pool *pgxpool.Pool, sender transporte.Sender, opts relay.Options) *running {
	t.Helper()
	r := &running{journal: newJournal(), log: &logText{}}
	opts.Observer = relay.Join(r.journal.observer(), opts.Observer)
	opts.Log = slog.New(slog.NewTextHandler(r.log, nil))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := relay.Run(ctx, pool, b.table, relay.Senders{"webhook": sender}, opts); err != nil {
			t.Errorf("relay.Run: got %v, want nil", err)
		}
	}()
	r.stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("relay.Run did not return after its context ended")
		}
	}
	t.Cleanup(r.stop)
	return r
}

// sleeping starts a relay that only wake-ups can wake, and waits until it hears notifications and has nothing to do.
func (b *box) sleeping(t *testing.T, pool *pgxpool.Pool, sender transporte.Sender, opts relay.Options) *running {
	t.Helper()
	opts.PollInterval = onlyWakeUps
	r := b.run(t, pool, sender, opts)
	b.asleep(t, r)
	return r
}

// asleep waits until the relay hears notifications. While it did not, it polled every second; the claim that takes this
// message sets the timer to the full poll.
func (b *box) asleep(t *testing.T, r *running) {
	t.Helper()
	r.awaitListening(t, 1)
	r.awaitSent(t, b.enqueue(t, message()))
}

// receiver takes every message and remembers how often.
type receiver struct {
	mu     sync.Mutex
	counts map[string]int
}

func newReceiver() *receiver { return &receiver{counts: map[string]int{}} }

// Send counts m.
func (r *receiver) Send(_ context.Context, m transporte.Message) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[m.ID]++
	return "", nil
}

func (r *receiver) count(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[id]
}

func (r *receiver) total() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, count := range r.counts {
		n += count
	}
	return n
}

// gate is a sender that reports each message and lets one through for each element of open, and all once that is closed.
type gate struct {
	receiver
	arrived chan string
	open    chan struct{}
}

// newGate lets the first n messages through.
func newGate(n int) *gate {
	g := &gate{receiver: receiver{counts: map[string]int{}}, arrived: make(chan string, 10_000), open: make(chan struct{}, 10_000)}
	for range n {
		g.open <- struct{}{}
	}
	return g
}

// Send waits for the gate as long as ctx allows.
func (g *gate) Send(ctx context.Context, m transporte.Message) (string, error) {
	g.arrived <- m.ID
	select {
	case <-g.open:
		return g.receiver.Send(ctx, m)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// logText keeps a log.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines gives the lines that contain all of parts.
func (l *logText) lines(parts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.text.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// receive waits for a value.
func receive[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v: %s", patience, what)
	}
	return v
}

func quick(t *testing.T, what string, took time.Duration) {
	t.Helper()
	if took > atOnce {
		t.Errorf("%s: got %v, want less than %v", what, took.Round(time.Millisecond), atOnce)
	}
}

// listenerPID is the server process of the relay's latest listener, 0 when there is none.
func (b *box) listenerPID(t *testing.T) int {
	t.Helper()
	return b.count(t, `select coalesce((select pid from pg_stat_activity
		where datname = current_database() and application_name = 'outbox relay: listen' order by backend_start desc limit 1), 0)`)
}

// openAll has a pool open every connection that it may have, so that it dials no more.
func openAll(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
}

// dialling is a pool of which a test can hold up a new connection.
type dialling struct {
	pool    *pgxpool.Pool
	holding atomic.Bool
	dialled chan chan struct{}
}

func newDialling(t *testing.T, b *box) *dialling {
	t.Helper()
	d := &dialling{dialled: make(chan chan struct{})}
	d.pool = pgtest.PoolOn(t, b.dsn, func(config *pgxpool.Config) {
		config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
			if d.holding.Load() {
				proceed := make(chan struct{})
				d.dialled <- proceed
				<-proceed
			}
			return nil
		}
	})
	return d
}

// holdListener ends the listener's session, and holds up the next one until proceed is closed.
func (d *dialling) holdListener(t *testing.T, b *box) (proceed chan struct{}) {
	t.Helper()
	openAll(t, d.pool) // or one of its own could be held
	d.holding.Store(true)
	b.killListener(t)
	proceed = receive(t, "the listener to dial again", d.dialled)
	d.holding.Store(false)
	return proceed
}

// killListener ends the listener's session and gives its process.
func (b *box) killListener(t *testing.T) (pid int) {
	t.Helper()
	waitfor.True(t, "a listener to be killed", func() bool {
		pid = b.listenerPID(t)
		return pid != 0 && b.count(t, "select pg_terminate_backend($1)::integer", pid) == 1
	})
	return pid
}
