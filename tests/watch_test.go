package tests

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
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

var transactions = flag.Int("watch.transactions", 2_000, "transactions of each run of the watch lock's stress test")

// lostAfter is how long committed messages may lie while no writer is at work before they count as lost. The relays' only
// other wake-up comes after 15 minutes.
const lostAfter = 15 * time.Second

// ledger knows which messages have been committed and not been sent.
type ledger struct {
	mu   sync.Mutex
	open map[string]bool
	sent map[string]int
}

func (l *ledger) committed(keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if l.sent[key] == 0 {
			l.open[key] = true
		}
	}
}

func (l *ledger) Send(_ context.Context, m transporte.Message) (string, error) {
	_, key, _ := strings.Cut(m.IdempotencyKey, ":")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[key]++
	delete(l.open, key)
	return "", nil
}

func (l *ledger) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// settled waits until everything committed is sent, and returns how much was not after lostAfter.
func (l *ledger) settled() int {
	for begun := time.Now(); l.left() > 0 && time.Since(begun) < lostAfter; {
		pause(context.Background(), time.Millisecond)
	}
	return l.left()
}

// trial is one run of the stress test.
type trial struct {
	relays, transactions int
	spoil                func(*pgxpool.Pool)                  // before it begins
	harm                 func(context.Context, *pgxpool.Pool) // while the writers of a spell are at work
}

const writers = 16

// stress has writers make transactions in short spells. After each it waits until no transaction is open and everything is
// sent, and so counts what was lost: committed, not announced, and every relay asleep. It ends at the first loss.
func stress(t *testing.T, trial trial) (made, lost, watched int) {
	ctx, cancel := context.WithCancel(t.Context())
	pool := stressPool(t, writers+8*trial.relays)
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate.Up(ctx, conn.Conn(), outbox.Table{}); err != nil {
		t.Fatal(err)
	}
	conn.Release()
	if trial.spoil != nil {
		trial.spoil(pool)
	}
	book := &ledger{open: map[string]bool{}, sent: map[string]int{}}
	var watches atomic.Int64
	var running sync.WaitGroup
	for range trial.relays {
		startRelay(ctx, t, &running, pool, book, &watches)
	}
	// On a machine that stands still now and then, the relays may need more to see that they are busy.
	for lost == 0 && (made < trial.transactions || watches.Load() == 0 && made < 10*trial.transactions) {
		made += spell(ctx, t, pool, book, trial.harm)
		lost = book.settled()
		pause(ctx, rand.N(500*time.Millisecond)) // around what it takes a relay that watches to fall asleep
	}
	cancel()
	running.Wait()
	for key, times := range book.sent {
		if times != 1 {
			t.Errorf("%s was sent %d times, want once", key, times)
		}
	}
	return made, lost, int(watches.Load())
}

// startRelay returns when the relay listens.
func startRelay(ctx context.Context, t *testing.T, running *sync.WaitGroup, pool *pgxpool.Pool, sender transporte.Sender, watches *atomic.Int64) {
	listening := make(chan struct{}, 16)
	running.Go(func() {
		err := relay.Run(ctx, pool, outbox.Table{}, relay.Senders{"correo": sender}, relay.Options{
			Batch: 200, Concurrency: 20, Timeout: 10 * time.Second, PollInterval: 15 * time.Minute, Log: slog.New(slog.DiscardHandler),
			Observer: relay.Observer{
				Listening: func(error) { listening <- struct{}{} },
				Watching: func(on bool) {
					if on {
						watches.Add(1)
					}
				},
			},
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-listening
}

// spell has each writer make transactions for a moment, and returns how many when the last one has ended.
func spell(ctx context.Context, t *testing.T, pool *pgxpool.Pool, book *ledger, harm func(context.Context, *pgxpool.Pool)) int {
	end := time.Now().Add(20*time.Millisecond + rand.N(100*time.Millisecond))
	var made atomic.Int64
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for time.Now().Before(end) {
				if err := write(ctx, pool, book); err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
				if rand.IntN(4) == 0 {
					pause(ctx, rand.N(10*time.Millisecond))
				}
			}
		})
	}
	if harm != nil {
		harm(ctx, pool)
	}
	writing.Wait()
	return int(made.Load())
}

func stressPool(t *testing.T, size int) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = int32(size)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

var errRollback = errors.New("roll back")

// serial numbers the messages of this process.
var serial atomic.Int64

// write is one transaction of a writer, of a random kind.
func write(ctx context.Context, pool *pgxpool.Pool, book *ledger) error {
	var keys []string
	enqueue := func(tx pgx.Tx) error {
		key := fmt.Sprint(serial.Add(1))
		keys = append(keys, key)
		_, err := outbox.Table{}.Enqueue(ctx, tx, outbox.Message{TenantID: tenant, Channel: "correo", Destination: "a@example.com", Template: "x", IdempotencyKey: key})
		return err
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := enqueue(tx); err != nil {
			return err
		}
		switch p := rand.IntN(2000); {
		case p < 8: // a long transaction, which may outlast the relay's patience
			pause(ctx, rand.N(400*time.Millisecond))
		case p < 250:
			pause(ctx, rand.N(2*time.Millisecond))
		case p < 300: // a savepoint that is given up
			keep := len(keys)
			_ = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return errors.Join(enqueue(tx), errRollback) })
			keys = keys[:keep]
		case p < 350: // a second statement
			pause(ctx, rand.N(time.Millisecond))
			return enqueue(tx)
		case p < 390:
			return errRollback
		}
		return nil
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	if err != nil {
		return err
	}
	book.committed(keys...)
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

const tenant = "7b0e3a0e-0000-4000-8000-000000000001"

func TestWatchLockLosesNoWakeUp(t *testing.T) {
	t.Parallel()
	killWatch := func(ctx context.Context, pool *pgxpool.Pool) {
		for range 3 {
			pause(ctx, rand.N(40*time.Millisecond))
			_, _ = pool.Exec(ctx, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outbox relay: watch' and datname = current_database()")
		}
	}
	for _, test := range []struct {
		name  string
		trial trial
	}{
		{"one relay", trial{relays: 1, transactions: *transactions}},
		{"three relays", trial{relays: 3, transactions: *transactions}},
		{"two relays whose sessions are killed", trial{relays: 2, transactions: *transactions / 2, harm: killWatch}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			made, lost, watched := stress(t, test.trial)
			if lost > 0 {
				t.Errorf("%d messages lay for %v while the relays slept, want none", lost, lostAfter)
			}
			if want := max(1, test.trial.transactions/5000); watched < want {
				t.Errorf("the relays watched %d times, want at least %d: this proves too little", watched, want)
			}
			t.Logf("%d transactions in %v, watched %d times, lost %d", made, time.Since(begun).Round(time.Second), watched, lost)
		})
	}
}

// The control: without the crossing lock a writer that was silent commits after the relay has gone to sleep.
func TestStressFindsTheWakeUpsThatTheCrossingLockSaves(t *testing.T) {
	t.Parallel()
	made, lost, _ := stress(t, trial{relays: 1, transactions: 500_000, spoil: func(pool *pgxpool.Pool) {
		const spoil = `do $do$ begin execute (
			select regexp_replace(replace(pg_get_triggerdef(oid), 'CREATE', 'CREATE OR REPLACE'), 'WHEN pg_try_advisory[^)]*[)]', 'WHEN true')
			from pg_trigger where tgrelid = 'outbox'::regclass and not tgisinternal); end $do$`
		if _, err := pool.Exec(t.Context(), spoil); err != nil {
			t.Fatal(err)
		}
	}})
	if lost == 0 {
		t.Errorf("no message was lost in %d transactions, want the stress test to find what the crossing lock prevents", made)
	}
	t.Logf("%d lost after %d transactions", lost, made)
}
