package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/sql"
)

// growthSuite measures what a table that has grown does to the relay.
func growthSuite(ctx context.Context, b *bench) error {
	g := growth{finished: scale(b, []int{1_000_000, 10_000_000}, []int{100_000, 300_000}),
		pending: scale(b, []int{100_000, 1_000_000}, []int{10_000, 50_000}), latency: true}
	if err := b.measureGrowth(ctx, g); err != nil {
		return err
	}
	return b.measureSnapshot(ctx, scale(b, 20, 4), scale(b, 50_000, 20_000))
}

// growth is how large the tables become.
type growth struct {
	finished []int // a table for each
	pending  []int // in the largest of them, one after another, due in a day as reminders are; the last also due now
	latency  bool  // measure the latency, too
}

// measureGrowth measures a claim of 20 due rows in tables that have grown, and at the same time, in turns, on an empty one;
// and the latency from commit to handler.
func (b *bench) measureGrowth(ctx context.Context, g growth) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	contenders := []contender{ours("ours", "defaults", ownTrigger, relay.Options{})}
	for range g.finished {
		contenders = append(contenders, contenders[0])
	}
	entries, drop, err := b.enter(ctx, s, contenders...)
	if err != nil {
		return err
	}
	empty, err := newGrown(ctx, entries[0], 0)
	if err != nil {
		return err
	}
	var tables []*grown
	for i, n := range g.finished {
		t, err := newGrown(ctx, entries[i+1], n)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	if err := b.measureGrown(ctx, g.latency, empty, tables...); err != nil {
		return err
	}
	largest := tables[len(tables)-1]
	most := 0
	for _, n := range g.pending {
		if err := largest.fillPending(ctx, n-most, 24*time.Hour); err != nil {
			return err
		}
		most = n
		largest.state = millions(largest.finished) + " finished, " + millions(n) + " pending"
		if err := b.measureGrown(ctx, g.latency, empty, largest); err != nil {
			return err
		}
	}
	due := g.pending[len(g.pending)-1]
	if err := largest.fillPending(ctx, due, 0); err != nil {
		return err
	}
	largest.state = millions(largest.finished) + " finished, " + millions(due) + " due"
	if err := b.measureGrown(ctx, false, empty, largest); err != nil {
		return err
	}
	for _, t := range append(tables, empty) {
		t.pool.Close()
	}
	return drop()
}

// measureGrown measures tables in the state in which they are, with the empty one in turns.
func (b *bench) measureGrown(ctx context.Context, latency bool, empty *grown, tables ...*grown) error {
	all := append([]*grown{empty}, tables...)
	claims, err := claimTimes(ctx, all, scale(b, 150, 50))
	if err != nil {
		return err
	}
	var samples [][]float64
	if latency {
		if samples, err = grownLatency(ctx, all, scale(b, 150, 30)); err != nil {
			return err
		}
	}
	for i, t := range all {
		f := figure{suite: "growth", disk: "plain", contender: "ours", load: t.state, unit: "ms"}
		if _, again := b.find(f.suite, f.disk, f.contender, f.load, "claim"); again {
			continue
		}
		f.metric, f.value = "claim", median(claims[i])
		b.add(f)
		f.metric, f.value = "claim on an empty table", median(claims[0])
		b.add(f)
		if latency {
			f.metric, f.value = "p50", percentile(samples[i], 50)
			b.add(f)
			f.metric, f.value = "p99", percentile(samples[i], 99)
			b.add(f)
		}
	}
	return nil
}

// millions writes a number of rows as people say it.
func millions(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1000:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

// grown is a table with finished and pending messages.
type grown struct {
	*entry
	pool     *pgxpool.Pool
	store    *claim.Store
	next     int // number of the next message
	finished int
	state    string // in words
}

func newGrown(ctx context.Context, e *entry, finished int) (*grown, error) {
	if err := fillFinished(ctx, e, finished); err != nil {
		return nil, fmt.Errorf("fill %d finished messages: %w", finished, err)
	}
	// Its own pool, as a relay has: fill changes a setting at which Postgres forgets the plans of the session.
	pool, err := newPool(ctx, e.db.dsn)
	if err != nil {
		return nil, err
	}
	store, _, err := claim.Open(ctx, pool, outbox.Table{})
	if err != nil {
		pool.Close()
		return nil, err
	}
	g := &grown{entry: e, pool: pool, store: store, next: finished, finished: finished, state: "empty"}
	if finished > 0 {
		g.state = millions(finished) + " finished"
	}
	return g, e.db.settle(ctx)
}

// fillFinished drops the indexes while it fills, which takes a third of the time and leaves the same table.
func fillFinished(ctx context.Context, e *entry, n int) error {
	if n == 0 {
		return nil
	}
	names := outbox.Table{}.Names()
	for _, statement := range []string{
		"alter table {{table}} drop constraint outbox_pkey",
		"drop index {{schema}}.{{due_index}}",
		"drop index {{schema}}.{{key_index}}",
	} {
		if _, err := e.db.pool.Exec(ctx, sql.Fill(statement, names)); err != nil {
			return err
		}
	}
	if err := fillParallel(ctx, e, 0, n, outbox.Sent, 0); err != nil {
		return err
	}
	for _, statement := range []string{"alter table {{table}} add constraint outbox_pkey primary key (id)", sql.KeyIndex, sql.DueIndex} {
		if _, err := e.db.pool.Exec(ctx, sql.Fill(statement, names)); err != nil {
			return err
		}
	}
	return nil
}

// fillParallel writes rows [from, to) on two connections at once.
func fillParallel(ctx context.Context, e *entry, from, to int, state outbox.State, wait time.Duration) error {
	const step = 250_000
	var g errgroup.Group
	g.SetLimit(2)
	for begin := from; begin < to; begin += step {
		g.Go(func() error { return fillOutbox(ctx, e.db.pool, channel, begin, min(begin+step, to), state, wait) })
	}
	return g.Wait()
}

func (g *grown) fillPending(ctx context.Context, n int, wait time.Duration) error {
	if err := fillParallel(ctx, g.entry, g.next, g.next+n, outbox.Pending, wait); err != nil {
		return err
	}
	g.next += n
	return g.db.settle(ctx)
}

// claimTimes times Take of 20 rows, in turns on each table, in milliseconds. On each, 20 fresh rows are due before
// (besides what is due already), and what was taken is recorded afterwards, outside the clock.
func claimTimes(ctx context.Context, tables []*grown, rounds int) ([][]float64, error) {
	samples := make([][]float64, len(tables))
	for round := range rounds + warmUp {
		for i, t := range tables {
			took, err := t.claim(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.state, err)
			}
			if round >= warmUp {
				samples[i] = append(samples[i], took.Seconds()*1000)
			}
		}
	}
	return samples, nil
}

// claimSize is the default batch.
const claimSize = 20

func (g *grown) claim(ctx context.Context) (took time.Duration, err error) {
	if err := fillOutbox(ctx, g.db.pool, channel, g.next, g.next+claimSize, outbox.Pending, 0); err != nil {
		return 0, err
	}
	g.next += claimSize
	begun := time.Now()
	batch, err := g.store.Take(ctx, claim.Ask{Limit: claimSize, Lease: time.Minute})
	took = time.Since(begun)
	if err != nil {
		return 0, err
	}
	if len(batch.Rows) != claimSize {
		return 0, fmt.Errorf("took %d rows, want %d", len(batch.Rows), claimSize)
	}
	results := make([]claim.Result, len(batch.Rows))
	for i, row := range batch.Rows {
		results[i] = claim.Result{Row: row, State: outbox.Sent}
	}
	_, err = g.store.Record(ctx, results)
	return took, err
}

// grownLatency is the latency suite at 30/s, on the tables as they are. It gives the samples of each, sorted.
func grownLatency(ctx context.Context, tables []*grown, turns int) ([][]float64, error) {
	rate := latencyRate{perSecond: 30, burst: 1, turns: turns, blocks: 1, writers: 1}
	var entries []*entry
	for _, t := range tables {
		e := *t.entry
		e.name, e.system = t.state, shifted{t.system, t.next}
		t.next += warmUp + rate.turns
		entries = append(entries, &e)
	}
	got := map[string][]float64{}
	if err := latencyBlock(ctx, entries, rate, got); err != nil {
		return nil, err
	}
	var samples [][]float64
	for _, t := range tables {
		samples = append(samples, slices.Sorted(slices.Values(got[t.state])))
	}
	return samples, nil
}

// shifted is a table that has messages already: new ones are numbered from by on, and it is not emptied.
type shifted struct {
	system
	by int
}

func (s shifted) empty(context.Context) error { return nil }

func (s shifted) insert(ctx context.Context, tx pgx.Tx, n int, at time.Time) error {
	return s.system.insert(ctx, tx, n+s.by, at)
}

func (s shifted) start(ctx context.Context, handle handle) (stop func() error, err error) {
	return s.system.start(ctx, func(n int, at time.Time) { handle(n-s.by, at) })
}
