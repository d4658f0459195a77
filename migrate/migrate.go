// Package migrate builds and updates an outbox in a database.
//
// One path serves an empty database and a table that another program made, such as the TypeScript package with Drizzle:
// Up adds what is missing and never drops, rewrites or blocks. Indexes are built concurrently, and a step that needs a
// lock on the table waits a quarter of a second for it at most, since every insert queues behind it, and then tries
// again. Several processes may call Up at the same time.
//
// It is a package of its own so that programs which only enqueue do not carry it. Those with a migration tool of their
// own take the text of SQL.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

const (
	// lockTimeout bounds how long inserts may queue behind a step that waits for a lock on the table.
	lockTimeout = 250 * time.Millisecond
	// patience is how long a step tries for that lock.
	patience = time.Minute
	// lockKey is an advisory lock of ours, for the whole database: tern's own lock is the same for all.
	lockKey = 0x6f7574626f78 // "outbox"
)

// Up brings the outbox to the newest version, and puts back what was lost since: a dropped trigger, an invalid index, a
// trigger that was edited. One that somebody disabled stays disabled. conn must be a session of its own: not in a
// transaction, not through a pooler in transaction mode. An interrupted Up leaves a state from which the next one goes on.
// The role must own the table and may create in its schema.
func Up(ctx context.Context, conn *pgx.Conn, t outbox.Table) error {
	return run(ctx, conn, t, func(m *migrate.Migrator) error {
		err := m.Migrate(ctx)
		var newer migrate.BadVersionError
		if errors.As(err, &newer) {
			return fmt.Errorf("%w: a newer release has updated it: update this program", outbox.ErrSchema)
		}
		if err != nil {
			return err
		}
		return mend(ctx, conn, t)
	})
}

// Down removes the trigger with its function, the two partial indexes and the version. The table with its messages, its
// columns and its unique index stay, and so do the pauses, which say what may not be sent: dropping them is left to a person.
func Down(ctx context.Context, conn *pgx.Conn, t outbox.Table) error {
	version, _, err := Status(ctx, conn, t)
	if err == nil && version > 0 { // otherwise it would make a schema to take nothing away
		err = run(ctx, conn, t, func(m *migrate.Migrator) error { return m.MigrateTo(ctx, 0) })
	}
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, sql.Fill("drop table if exists {{version_table}}", t.Names())); err != nil {
		return fmt.Errorf("drop the version of %s: %w", t, err)
	}
	return nil
}

// Status says which version the outbox has and which is the newest. An outbox that was never migrated has version 0.
func Status(ctx context.Context, conn *pgx.Conn, t outbox.Table) (version, newest int, err error) {
	if err := t.Validate(); err != nil {
		return 0, 0, err
	}
	newest = len(steps(t))
	err = conn.QueryRow(ctx, sql.Fill("select version from {{version_table}}", t.Names())).Scan(&version)
	if s := outbox.SQLState(err); s == "42P01" || s == "3F000" {
		return 0, newest, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the version of %s: %w", t, err)
	}
	return version, newest, nil
}

// TriggerDiffers tells whether the table has a trigger that is not as this release makes it: of another release, or edited.
// Up makes it anew.
func TriggerDiffers(ctx context.Context, conn *pgx.Conn, t outbox.Table) (bool, error) {
	if err := t.Validate(); err != nil {
		return false, err
	}
	there, err := readTrigger(ctx, conn, t)
	if err != nil {
		return false, fmt.Errorf("read the trigger of %s: %w", t, err)
	}
	return there != nil && !there.Fits(t.Names()), nil
}

// SQL is the whole definition as one script, for people with a migration tool of their own. It may be run again, but not
// inside a transaction: it builds its indexes concurrently. Unlike Up it does not look at what is there: on a table that has
// a unique index on tenant and key by another name, leave that statement out.
func SQL(t outbox.Table) (string, error) {
	if err := t.Validate(); err != nil {
		return "", err
	}
	parts := []string{sql.Schema, sql.Table, sql.Columns, sql.KeyIndex, sql.DueIndex, sql.Settings, sql.Triggers, sql.FailedIndex, sql.Pauses, sql.Version,
		fmt.Sprintf("update {{version_table}} set version = %d;\n", len(steps(t)))}
	return sql.Fill(strings.Join(parts, "\n"), t.Names()), nil
}

func run(ctx context.Context, conn *pgx.Conn, t outbox.Table, move func(*migrate.Migrator) error) error {
	if err := t.Validate(); err != nil {
		return err
	}
	unlock, err := lock(ctx, conn)
	if err != nil {
		return failed(t, err)
	}
	defer unlock()
	if err := ensureSchema(ctx, conn, t); err != nil {
		return failed(t, err)
	}
	m, err := migrate.NewMigrator(ctx, conn, t.Names()["version_table"])
	if err != nil {
		return failed(t, err)
	}
	m.Migrations = steps(t)
	deadline := time.Now().Add(patience)
	for {
		err := move(m)
		if !passes(err) || time.Now().After(deadline) {
			if err != nil {
				return failed(t, err)
			}
			return nil
		}
		if err := sleep(ctx, lockTimeout/2+rand.N(lockTimeout)); err != nil {
			return failed(t, err)
		}
	}
}

// failed is the error of a migration, with what to do when the role may not.
func failed(t outbox.Table, err error) error {
	if outbox.SQLState(err) != "42501" {
		return fmt.Errorf("migrate %s: %w", t, err)
	}
	schema := pgx.Identifier{t.SchemaName()}.Sanitize()
	return fmt.Errorf("migrate %s: run it as the owner of the table, or create schema %s if there is none and grant create on schema %s to this role: %w",
		t, schema, schema, err)
}

// passes tells whether an error is gone once somebody else's transaction ends: a lock that was not available, or a
// deadlock with another program that migrates by tern and waits, with a snapshot, for tern's own lock.
func passes(err error) bool {
	state := outbox.SQLState(err)
	return state == "55P03" || state == "40P01"
}

// lock keeps migrations apart. It asks again and again instead of waiting in pg_advisory_lock: a statement that waits
// holds a snapshot, which an index built concurrently waits for, and the two would deadlock.
func lock(ctx context.Context, conn *pgx.Conn) (unlock func(), err error) {
	for {
		var got bool
		if err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1::bigint)", lockKey).Scan(&got); err != nil {
			return nil, err
		}
		if got {
			break
		}
		if err := sleep(ctx, 50*time.Millisecond+rand.N(50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, err := conn.Exec(ctx, "select pg_advisory_unlock($1::bigint)", lockKey); err != nil {
			_ = conn.Close(ctx) // a session that ends gives the lock back, too
		}
	}, nil
}

// ensureSchema asks first: create schema needs a right on the database even when there is nothing to create.
func ensureSchema(ctx context.Context, conn *pgx.Conn, t outbox.Table) error {
	var there bool
	const ask = "select exists (select from pg_catalog.pg_namespace where nspname = $1::text)"
	if err := conn.QueryRow(ctx, ask, t.SchemaName()).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.Exec(ctx, sql.Fill(sql.Schema, t.Names()))
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	if err := retry.Sleep(ctx, d); err != nil {
		return errors.Join(errors.New("gave up waiting for another migration or transaction"), err)
	}
	return nil
}
