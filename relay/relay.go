// Package relay sends what stands in an outbox table.
//
// Run is a relay that lives until its context ends; an application embeds it, the command relay wraps it. RunOnce sends
// one batch and returns, for a cron job.
//
//	err := relay.Run(ctx, pool, outbox.Table{}, relay.Senders{"correo": correo}, relay.Options{})
//
// # What happens
//
// Wake-ups of every kind (a notification, the due time of the next row, the fallback poll) lead to the same loop: claim
// what can be carried, hand each row to a bounded group of senders, claim again at once while claims come back full. No
// transaction and no connection is held during a send. Before each send the remaining lease is checked: with less than
// Timeout + 1 s left the row is given back unsent, so two relays never send one row at the same time.
//
// # What is promised
//
// At least once: a message whose transaction committed is sent, or ends in a state that a person can see (fallido,
// descartado). It may be sent twice when a relay died, lost its lease or timed out around a send; the idempotency key is
// then the same. Between messages no order is promised beyond "oldest due first".
//
// Any outage of the database is survived. A relay stops claiming while it holds results that it cannot write.
package relay

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Senders has the sender of each channel.
type Senders map[string]transporte.Sender

// relay is what Run and RunOnce share.
type relay struct {
	pool    *pgxpool.Pool
	table   outbox.Table
	senders Senders
	opts    Options
	// policies has those of the channels with a sender.
	policies map[string]ChannelOptions
	log      *slog.Logger
	once     bool // RunOnce: a failed claim is not made again, a failed write a few times

	store   *claim.Store
	borrows bool           // the session that listens may claim: it does what one of the pool would
	session *claim.Session // on the connection that listens; belongs to whoever claims
	// pauses belongs to whoever claims. repaused has an element when it may have changed.
	pauses   []outbox.Pause
	repaused chan struct{}

	bell    *notify.Bell
	work    *work
	results *results
	claims  average // round trips
	writes  average
	tally   tally
	failing atomic.Bool // the last statement failed
}

func newRelay(pool *pgxpool.Pool, table outbox.Table, senders Senders, opts Options) (*relay, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w: a relay needs a pool", outbox.ErrInvalidOptions)
	}
	if err := table.Validate(); err != nil {
		return nil, err
	}
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	for channel, sender := range senders {
		if channel == "" || sender == nil {
			return nil, fmt.Errorf("%w: Senders must have a sender for each channel, got none for %q", outbox.ErrInvalidOptions, channel)
		}
	}
	if len(senders) == 0 {
		return nil, fmt.Errorf("%w: Senders must have at least one channel, or every message would be discarded", outbox.ErrInvalidOptions)
	}
	r := &relay{pool: pool, table: table, senders: maps.Clone(senders), opts: opts, log: opts.log(), bell: notify.NewBell(), repaused: make(chan struct{}, 1)}
	r.results = newResults(r)
	r.borrows = r.mayBorrow()
	limits := map[string]int{"": opts.concurrency()}
	r.policies = map[string]ChannelOptions{}
	for channel := range senders {
		r.policies[channel] = opts.policy(channel)
		limits[channel] = r.policies[channel].Concurrency
	}
	r.work = newWork(limits, r.process)
	r.tally.s.Warnings = opts.warnings()
	return r, nil
}

func (r *relay) policy(channel string) ChannelOptions {
	if policy, ok := r.policies[channel]; ok {
		return policy
	}
	return r.opts.policy(channel)
}

// ask is the claim that this relay makes.
func (r *relay) ask(limit int) claim.Ask {
	ask := claim.Ask{Limit: limit, Lease: r.opts.lease(), Horizon: r.opts.pollInterval(), Durable: r.opts.DurableClaims, Unpaused: r.pausing()}
	if r.opts.LeaveUnknownChannels {
		ask.Channels = slices.Sorted(maps.Keys(r.senders))
	}
	return ask
}

// take claims and hands the rows to the senders. With a loan it claims on that session, and on the pool if that fails.
func (r *relay) take(ctx context.Context, ask claim.Ask, loan *notify.Loan) (b *claim.Batch, err error) {
	r.bell.Looking()
	asking := context.WithoutCancel(ctx)
	if loan != nil && (ask.Unpaused || !r.borrows) { // what is paused may be a lot to pass over
		loan.Return()
		loan = nil
	}
	begin := func(b *claim.Batch) {
		r.taken(ctx, ask, b)
		runtime.Gosched() // the senders first
	}
	if loan != nil {
		if b := r.takeOn(asking, ask, loan, begin); b != nil {
			return b, nil
		}
	}
	err = r.statement(asking, func(ctx context.Context) (err error) {
		b, err = r.store.Take(ctx, ask)
		return err
	})
	if err != nil {
		if r.opts.Observer.Claim != nil {
			r.opts.Observer.Claim(Claim{Limit: ask.Limit, Err: err})
		}
		return nil, err
	}
	begin(b)
	return b, nil
}

// taken is called when a claim is committed.
func (r *relay) taken(ctx context.Context, ask claim.Ask, b *claim.Batch) {
	took := time.Since(b.TakenAt)
	r.claims.add(took)
	r.tally.claimed(len(b.Rows) + len(b.Closed))
	if r.opts.Observer.Claim != nil {
		r.opts.Observer.Claim(Claim{Limit: ask.Limit, Rows: len(b.Rows), Closed: len(b.Closed), Took: took})
	}
	r.closed(b)
	r.begin(ctx, b.Rows)
}

// mayBorrow: another role may see other rows and say nothing of it, and what the pool does to a connection may matter. A claim
// that waits for the disk could take longer than is waited for on the session that listens.
func (r *relay) mayBorrow() bool {
	pool := r.pool.Config()
	//lint:ignore SA1019 those who have BeforeAcquire still have it
	plain := pool.AfterConnect == nil && pool.PrepareConn == nil && pool.BeforeAcquire == nil
	if !plain || r.opts.DurableClaims {
		return false
	}
	if r.opts.ListenDSN == "" {
		return true
	}
	listen, err := pgx.ParseConfig(r.opts.ListenDSN)
	if err != nil {
		return false
	}
	of := pool.ConnConfig
	return listen.User == of.User && listen.RuntimeParams["role"] == of.RuntimeParams["role"] && listen.RuntimeParams["options"] == of.RuntimeParams["options"]
}

// takeOn claims on the session that listens, and gives nil when that cannot be done: its role may only listen, for example.
func (r *relay) takeOn(ctx context.Context, ask claim.Ask, loan *notify.Loan, begin func(*claim.Batch)) *claim.Batch {
	defer loan.Return()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var err error
	if r.session == nil || r.session.Conn != loan.Conn {
		r.session, err = r.store.NewSession(ctx, loan.Conn, ask.Durable, probeTimeout/2)
	}
	var b *claim.Batch
	begun := false
	if err == nil {
		b, err = r.session.Take(ctx, ask, func(b *claim.Batch) {
			begun = true
			begin(b)
		})
	}
	if err != nil {
		loan.Refuse()
		r.session = nil
		r.log.Info("the session that listens does not claim, the pool does", "err", retry.Reason(err))
	}
	if !begun || err != nil && len(b.Rows)+len(b.Closed) == 0 {
		return nil // nothing was taken, and nobody knows when the next row falls due
	}
	return b
}

// closed counts the rows that the claim itself closed.
func (r *relay) closed(b *claim.Batch) {
	for _, c := range b.Closed {
		row := &claim.Row{ID: c.ID, TenantID: c.TenantID, Channel: c.Channel, Attempts: c.Attempts, Batch: b}
		r.recorded(claim.Result{Row: row, State: outbox.Failed, Category: outbox.Network, Code: c.Code}, Failed)
	}
}

// recorded counts and reports the outcome of a message.
func (r *relay) recorded(result claim.Result, outcome Outcome) {
	r.tally.outcome(outcome)
	level := slog.LevelDebug
	if outcome == Errored {
		level = slog.LevelError
	}
	ctx := context.Background()
	logs := r.log.Enabled(ctx, level)
	if !logs && r.opts.Observer.Recorded == nil {
		return
	}
	attempt := attemptOf(result.Row)
	if logs {
		r.log.Log(ctx, level, "message "+string(outcome), "id", attempt.ID, "tenant", attempt.TenantID, "channel", attempt.Channel,
			"attempt", attempt.Number, "category", result.Category, "code", result.Code)
	}
	if r.opts.Observer.Recorded != nil {
		r.opts.Observer.Recorded(Recorded{Attempt: attempt, Outcome: outcome, Category: result.Category, Code: result.Code, RetryIn: result.RetryIn})
	}
}

// help wakes the other relays. Losing it costs a wait for the poll, so a failure is only reported.
func (r *relay) help(ctx context.Context) { _ = r.statement(context.WithoutCancel(ctx), r.store.Help) }
