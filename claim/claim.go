// Package claim owns the statements that move a row of the outbox: take, record, release.
//
// A row is taken under a lease: until the time in bloqueado_hasta nobody else takes it. That time is also the fencing
// token of whoever took the row: Record and Release touch a row only while it still carries it. When a relay dies, its
// leases end and the rows are taken again, with the attempt counted; when the attempts are used up, Take closes the row.
//
//	pendiente --Take--> procesando --Record--> enviado | pendiente (later) | fallido | descartado
//	    ^                   |  ^------------- Take, once the lease has ended
//	    '-----Release-------'
//
// The database's clock decides what is due and when a lease ends. Batch.TakenAt is this process's clock from just before
// the question went out: the lease that may still be counted on is its length less the time passed since then, so that a
// wrong clock on either side can neither steal nor overrun a lease.
package claim

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// Store moves the rows of one outbox table. It is safe for concurrent use. It uses one connection of the pool at a time
// in each call, and none between calls.
type Store struct {
	pool                  *pgxpool.Pool
	table                 outbox.Table
	optional              bool
	take, record, release string
	// takeOnly is take without the next due time, for which next asks, after all that takeOnly looks for.
	takeOnly, next string
	takeUnpaused   string // take, but for what is paused
}

// Open looks at the table. The error wraps outbox.ErrSchema when a relay cannot work on it.
func Open(ctx context.Context, pool *pgxpool.Pool, t outbox.Table) (*Store, outbox.Inspection, error) {
	in, err := t.Inspect(ctx, pool)
	if err != nil {
		return nil, in, err
	}
	if err := in.Fit(); err != nil {
		return nil, in, err
	}
	names := t.Names()
	names["optional"] = ""
	if in.Optional() {
		names["optional"] = ", t.clave_orden, t.cabeceras"
	}
	s := &Store{
		pool:     pool,
		table:    t,
		optional: in.Optional(),
		record:   sql.Fill(recordResultsSQL, names),
		release:  sql.Fill(releaseSQL, names),
	}
	fill := func(statement string, more sql.Names) string {
		all := maps.Clone(names)
		maps.Copy(all, more)
		return sql.Fill(statement, all)
	}
	withNext := func(andUnpaused string) string {
		next := fill(nextDueSQL, sql.Names{"after": "> now()", "channels": "$4", "horizon": "$5", "and_unpaused": andUnpaused,
			"and_if": " and (select count(*) from due) < $1::integer"})
		return fill(claimDueSQL, sql.Names{"and_unpaused": andUnpaused, "alone": "", "open": ", taken as (", "close": `)
select now(), (select pg_current_snapshot()::text), next.due, taken.* from (` + next + `) as next left join taken on true`})
	}
	s.takeUnpaused = withNext("\n    and " + names["unpaused"])
	s.take = withNext("")
	s.takeOnly = fill(claimDueSQL, sql.Names{"and_unpaused": "", "alone": "now(), pg_current_snapshot()::text, null::timestamptz, ", "open": "", "close": ""})
	next := fill(nextDueSQL, sql.Names{"after": ">= coalesce($3::timestamptz, '-infinity')", "channels": "$1", "horizon": "$2", "and_unpaused": "", "and_if": ""})
	s.next = "select now(), pg_current_snapshot()::text, due from (" + next + ") as next"
	return s, in, nil
}

// Notify sends a payload on the table's channel. Alone in its transaction, it does not wait for the disk.
func (s *Store) Notify(ctx context.Context, payload string) error {
	if _, err := s.pool.Exec(ctx, "select pg_notify($1::text, $2::text)", s.table.Channel(), payload); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

// Help wakes the other relays of the table.
func (s *Store) Help(ctx context.Context) error { return s.Notify(ctx, "help") }

// planned runs a statement behind planner.sql, or more settings, in one round trip and one transaction.
func (s *Store) planned(ctx context.Context, settings, statement string, args []any, read func(pgx.Rows) error) error {
	var b pgx.Batch
	b.Queue(settings)
	b.Queue(statement, args...)
	results := s.pool.SendBatch(ctx, &b)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // reports the same error again
		return err
	}
	rows, err := results.Query()
	if err == nil {
		err = read(rows)
	}
	if closed := results.Close(); err == nil {
		err = closed // the commit itself may fail
	}
	return err
}

// positions reads which of n rows were still ours.
func positions(rows pgx.Rows, n int) ([]bool, error) {
	ours := make([]bool, n)
	var at int64
	_, err := pgx.ForEachRow(rows, []any{&at}, func() error {
		ours[at-1] = true
		return nil
	})
	return ours, err
}
