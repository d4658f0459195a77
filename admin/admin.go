// Package admin is a person's work on an outbox: see how it stands, look at messages, send them again, cancel them, pause.
//
// Everything here may run beside relays. Questions are answered from the indexes or look at a bounded part of the table at
// a time; changes are made in small steps, never wait for a row that a relay holds, and never touch one under a valid
// lease. Deleting what is finished is outbox.Table.Purge.
//
// Each function returns an error that wraps outbox.ErrInvalidOptions for a wrong argument, and outbox.ErrSchema when the
// table is older than this package needs.
package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// DB is a pool or a connection of pgx.
type DB interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// settingsSQL keeps a question to the indexes, whatever the statistics say, and bounds it: an old snapshot holds up vacuum.
const settingsSQL = `select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true), set_config('jit', 'off', true), set_config('statement_timeout', '30s', true)`

// ready checks that the table has what this package needs.
func ready(ctx context.Context, db DB, t outbox.Table) error {
	in, err := t.Inspect(ctx, db)
	if err != nil {
		return err
	}
	return in.Operable()
}

// read runs questions that see the same state of the table.
func read(ctx context.Context, db DB, ask func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settingsSQL); err != nil {
			return err
		}
		return ask(tx)
	})
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", outbox.ErrInvalidOptions, fmt.Errorf(format, args...))
}

// failed is the error of an operation, with what to do about it.
func failed(what string, err error) error {
	switch {
	case outbox.SQLState(err) == "42501":
		return fmt.Errorf("%s: this role lacks a grant (docs/doctor.md lists what each role needs): %w", what, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: stopped, the same call again goes on: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// checkTenant refuses what the tenant column cannot hold.
func checkTenant(t outbox.Table, tenantID string) error {
	if tenantID == "" || t.Names()["tenant_type"] != string(outbox.TenantUUID) {
		return nil
	}
	return checkUUID("the tenant", tenantID)
}

func checkUUID(what, s string) error {
	if _, err := uuid.Parse(s); err != nil || len(s) != 36 {
		return invalid("%s must be a UUID of 36 characters", what)
	}
	return nil
}

// ErrNotFound says that there is no such message.
var ErrNotFound = errors.New("there is no such message")
