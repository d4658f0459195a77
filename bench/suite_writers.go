package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/relay"
)

// writersSuite measures what an outbox costs those who write: their commits/s, on both disks.
//
// Draining: each transaction is one insert in one round trip, and the same relay sends what is written, so that the
// machine does the same work for each contender and only the wake-up differs. Alone: no relay runs (or all sleep), and
// each transaction is a business row and a message, with begin, two inserts and commit.
func writersSuite(ctx context.Context, b *bench) error {
	for _, disk := range []func(context.Context) (*server, error){b.plainDisk, b.slowDisk} {
		s, err := disk(ctx)
		if err != nil {
			return err
		}
		counts := scale(b, []int{1, 8, 32}, []int{1, 32})
		slice := scale(b, 2*time.Second, time.Second)
		draining := writersRun{suite: "writers", rounds: scale(b, 3, 1), slice: slice, relay: true, write: oneStatement}
		if err := b.measureWriters(ctx, s, draining, counts, drainingContenders...); err != nil {
			return err
		}
		alone := writersRun{suite: "writers alone", rounds: scale(b, 2, 1), slice: slice, write: businessTransaction}
		if err := b.measureWriters(ctx, s, alone, scale(b, counts, []int{32}), aloneContenders...); err != nil {
			return err
		}
	}
	return nil
}

// The relay behind the writers is set to carry as many messages as they can write; each contender has the same.
const writersConcurrency, writersBatch = 100, 500

var (
	writersPolled = ours("no trigger, poll 10 ms", "our relay (concurrency 100, batch 500), polling every 10 ms", noTrigger,
		relay.Options{Concurrency: writersConcurrency, Batch: writersBatch, NoWatch: true, PollInterval: 10 * time.Millisecond})
	writersNotified = ours("NOTIFY trigger", "our relay (concurrency 100, batch 500), woken by a plain NOTIFY in every commit", plainTrigger,
		relay.Options{Concurrency: writersConcurrency, Batch: writersBatch, NoWatch: true})
	writersOurs = ours("ours", "our relay (concurrency 100, batch 500) and trigger", ownTrigger,
		relay.Options{Concurrency: writersConcurrency, Batch: writersBatch})

	drainingContenders = []contender{writersPolled, writersNotified, writersOurs}
	aloneContenders    = []contender{
		noOutbox,
		ours("plain insert", "Enqueue without a trigger", noTrigger, relay.Options{}),
		ours("NOTIFY trigger", "Enqueue with a plain NOTIFY in every commit", plainTrigger, relay.Options{}),
		ours("ours", "Enqueue with our trigger; nobody is awake, so it rings", ownTrigger, relay.Options{}),
		riverInsert,
	}
)

// noOutbox writes the business row only.
var noOutbox = contender{name: "no outbox", about: "the business row alone", open: func(context.Context, *database) (system, error) {
	return nothing{}, nil
}}

type nothing struct{}

func (nothing) insert(context.Context, pgx.Tx, int, time.Time) error { return nil }
func (nothing) fill(context.Context, int, int) error                 { return nil }
func (nothing) unfinished(context.Context) (bool, error)             { return false, nil }
func (nothing) empty(context.Context) error                          { return nil }
func (nothing) start(context.Context, handle) (func() error, error) {
	return func() error { return nil }, nil
}

// riverInsert is River's InsertTx, which notifies at most once per FetchCooldown and client.
var riverInsert = riverContender("River InsertTx", "InsertTx with the default FetchCooldown: at most one NOTIFY in 100 ms", riverSettings{maxWorkers: 100})

type writersRun struct {
	suite  string
	rounds int
	slice  time.Duration
	relay  bool // one drains meanwhile
	write  func(ctx context.Context, conn *pgx.Conn, e *entry, n int) error
}

// writersWarmUp is the part of a slice that is not measured.
const writersWarmUp = 500 * time.Millisecond

func (b *bench) measureWriters(ctx context.Context, s *server, run writersRun, counts []int, contenders ...contender) error {
	entries, drop, err := b.enter(ctx, s, contenders...)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := e.db.pool.Exec(ctx, "create table business (id bigint generated always as identity primary key, name text, at timestamptz)"); err != nil {
			return err
		}
	}
	for _, count := range counts {
		commits, behind := map[string][]float64{}, map[string][]float64{}
		for round := range run.rounds {
			for _, e := range rotated(entries, round) {
				w, err := writersSliceOf(ctx, e, run, count)
				if err != nil {
					return fmt.Errorf("%s, %d writers: %w", e.name, count, err)
				}
				commits[e.name] = append(commits[e.name], w.rate)
				behind[e.name] = append(behind[e.name], w.behind)
			}
		}
		for _, e := range entries {
			load := fmt.Sprintf("%d writers", count)
			b.addRounds(figure{suite: run.suite, disk: s.disk, contender: e.name, load: load, metric: "commits", unit: "tx/s"}, commits[e.name])
			if run.relay {
				b.addRounds(figure{suite: run.suite, disk: s.disk, contender: e.name, load: load, metric: "behind", unit: "messages"}, behind[e.name])
			}
		}
	}
	return drop()
}

// written is what writers did in a slice.
type written struct {
	rate   float64 // commits/s
	behind float64 // messages written and not yet sent at the end: how far the relay, and so the machine, was spared
}

func writersSliceOf(ctx context.Context, e *entry, run writersRun, count int) (w written, err error) {
	if err := e.empty(ctx); err != nil {
		return w, err
	}
	if err := e.db.settle(ctx); err != nil {
		return w, err
	}
	const most = 500_000 // messages in a slice
	p := newProbe(most)
	stop := func() error { return nil }
	if run.relay {
		if stop, err = e.start(ctx, p.handle); err != nil {
			return w, err
		}
	}
	n, rate, err := writeFor(ctx, e, run, count)
	w.rate = rate
	if run.relay && err == nil {
		w.behind = float64(int64(n) - p.count.Load())
		err = p.waitFor(ctx, n, drainLimit)
	}
	err = errors.Join(err, stop())
	if err == nil && run.relay {
		err = p.exactlyOnce(n)
	}
	return w, err
}

// writeFor lets writers write as fast as they can and gives the number of messages and the rate of commits after the
// warm-up.
func writeFor(ctx context.Context, e *entry, run writersRun, count int) (n int, rate float64, err error) {
	conns := make([]*pgx.Conn, count)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, e.db.dsn); err != nil {
			return 0, 0, err
		}
		defer conns[i].Close(ctx)
	}
	var next, committed atomic.Int64
	var ended atomic.Bool
	failures := make(chan error, count)
	var wg sync.WaitGroup
	for _, conn := range conns {
		wg.Go(func() {
			for !ended.Load() {
				if err := run.write(ctx, conn, e, int(next.Add(1)-1)); err != nil {
					failures <- err
					return
				}
				committed.Add(1)
			}
		})
	}
	err = pause(ctx, writersWarmUp)
	begun, before := time.Now(), committed.Load()
	if err == nil {
		err = pause(ctx, run.slice)
	}
	rate = float64(committed.Load()-before) / time.Since(begun).Seconds()
	ended.Store(true)
	wg.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return int(next.Load()), rate, err
}

// oneStatement commits a message with the insert alone: one round trip.
func oneStatement(ctx context.Context, conn *pgx.Conn, e *entry, n int) error {
	return e.insert(ctx, autocommit{conn: conn}, n, time.Time{})
}

// autocommit is a transaction of one statement: what is asked of it is committed with the answer.
type autocommit struct {
	pgx.Tx
	conn *pgx.Conn
}

func (a autocommit) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	return a.conn.QueryRow(ctx, statement, args...)
}

// businessTransaction commits a business row and a message: four round trips.
func businessTransaction(ctx context.Context, conn *pgx.Conn, e *entry, n int) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into business (name, at) values ($1, now())", "Ana Benítez"); err != nil {
		return err
	}
	if err := e.insert(ctx, tx, n, time.Time{}); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
