// Package retention deletes finished messages that are old enough, as long as it runs.
//
//	policy := retention.Policy{outbox.Sent: 30 * 24 * time.Hour}
//	err := retention.Run(ctx, pool, table, policy, retention.Options{})
//
// Run it beside each relay: one of them does the work, and another takes over when that one ends. A message's idempotency
// key goes with it, so enqueueing the key again after that sends again.
package retention

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// Policy says how long finished messages are kept after they were last touched: at least a minute. The states are enviado,
// fallido and descartado. Messages of a state that is not there are kept for ever.
type Policy map[outbox.State]time.Duration

// shortest keeps a number without a unit from deleting everything.
const shortest = time.Minute

// Validate returns an error that wraps outbox.ErrInvalidOptions and names the state and the bound.
func (p Policy) Validate() error {
	if len(p) == 0 {
		return fmt.Errorf("%w: retention needs at least one state: %s, %s or %s", outbox.ErrInvalidOptions, outbox.Sent, outbox.Failed, outbox.Discarded)
	}
	for _, state := range slices.Sorted(maps.Keys(p)) {
		switch {
		case !state.Terminal():
			return fmt.Errorf("%w: retention is of %s, %s and %s, not of %q", outbox.ErrInvalidOptions, outbox.Sent, outbox.Failed, outbox.Discarded, state)
		case p[state] < shortest:
			return fmt.Errorf("%w: retention of %s must be at least %v, got %v", outbox.ErrInvalidOptions, state, shortest, p[state])
		}
	}
	return nil
}

// byAge has the states of each age together: one pass through the table serves them all.
func (p Policy) byAge() map[time.Duration][]outbox.State {
	ages := make(map[time.Duration][]outbox.State)
	for state, age := range p {
		ages[age] = append(ages[age], state)
	}
	return ages
}

// Options of a retention. The zero value works.
type Options struct {
	// Every is the time between two rounds, up to a fifth shorter at random. Zero means 1 hour; otherwise at least 1 s.
	// A round that failed is tried again after 5 minutes at most.
	Every time.Duration
	// DSN is a direct connection to the database, for those whose pool goes through a pooler in transaction mode: by it the
	// relays agree on who does the work. Empty means the pool's own. Behind such a pooler each relay makes its own rounds,
	// still one at a time.
	DSN string
	// Done hears of each round. It may be nil.
	Done func(Round)
}

func (o Options) every() time.Duration { return cmp.Or(o.Every, time.Hour) }

// Round is what one round did.
type Round struct {
	Deleted int64 // messages
	// Skipped: another relay does the work.
	Skipped bool
	Took    time.Duration
	// Err is why it ended early. What was deleted before stays deleted.
	Err error
}

// firstRound is the longest wait before the first round: soon, so that a relay that is restarted all the time purges, too.
const firstRound = 10 * time.Second

// longestRetry is the longest wait after a round that failed.
const longestRetry = 5 * time.Minute

// Run makes rounds until ctx ends and then returns nil. It survives any outage of the database. The error wraps
// outbox.ErrInvalidOptions. It uses one connection of the pool for one statement at a time, with pauses as long as the
// statements, and one of its own while it does the work.
func Run(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, policy Policy, opts Options) error {
	if err := table.Validate(); err != nil {
		return err
	}
	if err := policy.Validate(); err != nil {
		return err
	}
	if opts.every() < time.Second {
		return fmt.Errorf("%w: Options.Every must be at least 1s, got %v", outbox.ErrInvalidOptions, opts.Every)
	}
	t := &turn{pool: pool, dsn: opts.DSN, lock: table.PurgeLock()}
	defer t.end()
	for wait := min(firstRound, opts.every()); retry.Sleep(ctx, rand.N(wait)) == nil; {
		round := run(ctx, t, pool, table, policy)
		if ctx.Err() != nil {
			return nil
		}
		if opts.Done != nil {
			opts.Done(round)
		}
		wait = opts.every() / 5
		pause := opts.every() - wait
		if round.Err != nil {
			pause = min(pause, longestRetry)
		}
		if retry.Sleep(ctx, pause) != nil {
			return nil
		}
	}
	return nil
}

// run is one round.
func run(ctx context.Context, t *turn, pool *pgxpool.Pool, table outbox.Table, policy Policy) (r Round) {
	begun := time.Now()
	defer func() { r.Took = time.Since(begun) }()
	ours, err := t.begin(ctx)
	if err != nil || !ours {
		return Round{Skipped: err == nil, Err: err}
	}
	defer t.pause()
	db := &paced{pool: pool}
	var now time.Time // the server's: the times in the table are by its clock
	if r.Err = db.QueryRow(ctx, "select now()").Scan(&now); r.Err != nil {
		return r
	}
	for age, states := range policy.byAge() {
		n, err := table.Purge(ctx, db, now.Add(-age), states...)
		r.Deleted += n
		if err != nil {
			r.Err = err
			return r
		}
	}
	return r
}
