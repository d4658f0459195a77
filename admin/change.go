package admin

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed redrive.sql
	redriveSQL string
	//go:embed cancel.sql
	cancelSQL string
)

// leased is the condition that a relay may be at work on the row o.
const leased = "(o.estado = 'procesando' and coalesce(o.bloqueado_hasta > now(), true))"

// Group is how many messages of one kind a change is about.
type Group struct {
	State    outbox.State `json:"state"`
	Channel  string       `json:"channel"`
	Category string       `json:"category,omitempty"`
	Code     string       `json:"code,omitempty"`
	Messages int          `json:"messages"`
}

// Result is what a change did, or in a dry run would do.
type Result struct {
	Changed int `json:"changed"` // messages that were changed
	// Leased were not, because a relay holds them under a valid lease; Held, because somebody else was at work on them or
	// they fit no more.
	Leased int `json:"leased"`
	Held   int `json:"held"`
	// Groups are the messages that fit and are not leased, the largest group first.
	Groups []Group `json:"groups"`
}

// Matched is how many messages fit and are not leased.
func (r Result) Matched() (n int) {
	for _, g := range r.Groups {
		n += g.Messages
	}
	return n
}

// ChangeOptions are how a change is made. The zero value changes as fast as the steps go.
type ChangeOptions struct {
	// DryRun only counts.
	DryRun bool
	// Rate is the most messages a second. Zero means no bound; negative is invalid.
	Rate float64
	// Progress hears after each step what was done so far. Nil: nobody.
	Progress func(Result)
}

// stepChanges is the most messages that one step changes. Their rows are locked for its few milliseconds.
const stepChanges = 200

// change is what is done to messages.
type change struct {
	statement string
	args      []any // from $2 on
	ring      bool  // relays have something to send afterwards
}

// Redrive sends messages again that fit f, the oldest failure first: pending, due at once, with all their attempts. Without
// states it is about fallido and descartado, and for ids also about pendiente (a message that waits for its next attempt goes
// at once) and procesando (once its lease has ended). enviado must be named: it sends a second time, under the same
// idempotency key. A message under a valid lease is left alone, and so is the time for which one is scheduled.
//
// It goes in steps of at most 200 messages, each of which tells the relays. When ctx ends or the database fails, the steps
// that were made stay, and are counted. Run it again with the same filter to go on.
func Redrive(ctx context.Context, db DB, t outbox.Table, f Filter, opts ChangeOptions) (Result, error) {
	if len(f.States) == 0 {
		f.States = []outbox.State{outbox.Failed, outbox.Discarded}
		if len(f.IDs) > 0 {
			f.States = append(f.States, outbox.Pending, outbox.Processing)
		}
	}
	r, err := apply(ctx, db, t, f, opts, change{statement: redriveSQL, ring: true})
	if err != nil {
		return r, failed(fmt.Sprintf("redrive (changed=%d)", r.Changed), err)
	}
	return r, nil
}

// The category and code of messages that Cancel discards, unless others are given.
const (
	CancelCategory = "cancelado"
	CancelCode     = "operador"
)

// Cancel discards messages that fit f and wait (pendiente, or procesando once the lease has ended), with a category and a code
// (see outbox.ShortCode); empty ones mean CancelCategory and CancelCode. What a relay holds is not stopped, and is counted. As
// Redrive it goes in steps.
func Cancel(ctx context.Context, db DB, t outbox.Table, f Filter, category, code string, opts ChangeOptions) (Result, error) {
	if len(f.States) == 0 {
		f.States = []outbox.State{outbox.Pending, outbox.Processing}
	}
	if !f.within(outbox.Pending, outbox.Processing) {
		return Result{}, invalid("only messages that wait can be cancelled, in pendiente or procesando, not %s", joined(f.States))
	}
	category, code = outbox.ShortCode(cmp.Or(category, CancelCategory)), outbox.ShortCode(cmp.Or(code, CancelCode))
	r, err := apply(ctx, db, t, f, opts, change{statement: cancelSQL, args: []any{category, code}})
	if err != nil {
		return r, failed(fmt.Sprintf("cancel (changed=%d)", r.Changed), err)
	}
	return r, nil
}

// apply goes through the messages that fit.
func apply(ctx context.Context, db DB, t outbox.Table, f Filter, opts ChangeOptions, c change) (r Result, err error) {
	if err := f.Validate(t); err != nil {
		return r, err
	}
	if !(opts.Rate >= 0) || math.IsInf(opts.Rate, 0) {
		return r, invalid("a rate must be above 0 messages a second, or 0 for no bound, not %v", opts.Rate)
	}
	if err := ready(ctx, db, t); err != nil {
		return r, err
	}
	if f, err = settled(ctx, db, f); err != nil {
		return r, err
	}
	groups := map[Group]int{}
	w, size := wayOf(f, true), step(opts)
	var at Cursor
	for {
		p, err := list(ctx, db, t, f, w, at, size)
		if err != nil {
			return r, err
		}
		ids := r.count(p.Messages, groups)
		begun := time.Now()
		if len(ids) > 0 && !opts.DryRun {
			n, err := c.make(ctx, db, t, f, ids)
			if err != nil {
				return r, err
			}
			r.Changed += n
			r.Held += len(ids) - n
		}
		if opts.Progress != nil {
			opts.Progress(r)
		}
		if at = p.Next; at == "" {
			return r, nil
		}
		if err := pace(ctx, opts, len(ids), begun); err != nil {
			return r, err
		}
	}
}

// settled leaves out what changes from now on: a message that was sent again and failed again would fit once more.
func settled(ctx context.Context, db DB, f Filter) (Filter, error) {
	var now time.Time
	if err := db.QueryRow(ctx, "select now()").Scan(&now); err != nil {
		return f, err
	}
	if f.Until.IsZero() || f.Until.After(now) {
		f.Until = now
	}
	return f, nil
}

// step is how many messages are looked at at once: no more than a rate allows in a second.
func step(opts ChangeOptions) int {
	if opts.DryRun {
		return stepRows
	}
	if opts.Rate > 0 {
		return max(1, min(stepChanges, int(opts.Rate/2)))
	}
	return stepChanges
}

// pace waits until the next step may be made.
func pace(ctx context.Context, opts ChangeOptions, n int, begun time.Time) error {
	if opts.Rate == 0 || opts.DryRun || n == 0 {
		return ctx.Err()
	}
	return retry.Sleep(ctx, time.Duration(float64(n)/opts.Rate*float64(time.Second))-time.Since(begun))
}

// count adds messages to the result and gives the ids of those that may be changed.
func (r *Result) count(messages []Message, groups map[Group]int) (ids []string) {
	for _, m := range messages {
		if m.Leased {
			r.Leased++
			continue
		}
		ids = append(ids, m.ID)
		groups[Group{State: m.State, Channel: m.Channel, Category: m.Category, Code: m.Code}]++
	}
	if len(ids) > 0 {
		r.Groups = r.Groups[:0:0]
		for g, n := range groups {
			g.Messages = n
			r.Groups = append(r.Groups, g)
		}
		slices.SortFunc(r.Groups, func(a, b Group) int {
			return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
		})
	}
	return ids
}

// make changes these messages, unless they have changed meanwhile, and tells how many.
func (c change) make(ctx context.Context, db DB, t outbox.Table, f Filter, ids []string) (n int, err error) {
	in := where{args: append([]any{ids}, c.args...)}
	f.IDs = nil
	f.on(&in)
	names := maps.Clone(t.Names())
	names["leased"], names["conditions"] = leased, sql.Fill(in.String(), names)
	statement := sql.Fill(c.statement, names)
	ring := "''"
	if c.ring {
		ring = "pg_notify({{channel}}, 'help')::text"
	}
	// One transaction: relays look when they can see the rows.
	statement = "with changed as (" + strings.TrimSpace(statement) + ") select n, case when n > 0 then " + sql.Fill(ring, names) +
		" end from (select count(*) as n from changed) c"
	var told *string
	err = db.QueryRow(ctx, statement, in.args...).Scan(&n, &told)
	return n, err
}
