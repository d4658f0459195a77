package outbox

import (
	"context"
	databasesql "database/sql"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed enqueue.sql
	enqueueSQL string
	//go:embed find_key.sql
	findKeySQL string
)

// Enqueued is the answer to one message.
type Enqueued struct {
	// ID of the row: a UUID. Of the existing row when the key was already there.
	ID string
	// New is false when a message with the same tenant and key was there already. It was not changed in any way.
	New bool
}

// Enqueue writes m within tx: it becomes visible, and is sent, when tx commits, and never if tx rolls back. When another
// open transaction holds the same key, Enqueue waits for its end.
//
// Errors wrap ErrInvalidOptions (m is at fault, tx is still good), ErrTransactionRequired (tx has ended or failed) or
// ErrConflict (repeatable read only).
func (t Table) Enqueue(ctx context.Context, tx pgx.Tx, m Message) (Enqueued, error) {
	if tx == nil {
		return Enqueued{}, fmt.Errorf("enqueue: %w", ErrTransactionRequired)
	}
	return t.enqueue(m, func(statement string, args ...any) (id string, err error) {
		err = tx.QueryRow(ctx, statement, args...).Scan(&id)
		return id, err
	})
}

// EnqueueSQL is Enqueue for database/sql, with any driver that speaks to Postgres.
func (t Table) EnqueueSQL(ctx context.Context, tx *databasesql.Tx, m Message) (Enqueued, error) {
	if tx == nil {
		return Enqueued{}, fmt.Errorf("enqueue: %w", ErrTransactionRequired)
	}
	return t.enqueue(m, func(statement string, args ...any) (id string, err error) {
		err = tx.QueryRowContext(ctx, statement, args...).Scan(&id)
		return id, err
	})
}

func (t Table) enqueue(m Message, queryID func(statement string, args ...any) (string, error)) (Enqueued, error) {
	if err := t.Validate(); err != nil {
		return Enqueued{}, err
	}
	r, err := m.row(t)
	if err != nil {
		return Enqueued{}, err
	}
	names := t.Names()
	args := []any{r.id, r.tenant, r.channel, r.destination, r.template, r.data, r.key, r.maxAttempts, r.scheduledFor}
	names["optional"], names["optional_values"] = "", ""
	if r.orderingKey != nil || r.headers != nil {
		names["optional"], names["optional_values"] = ", clave_orden, cabeceras", ", $10::text, $11::text::jsonb"
		args = append(args, r.orderingKey, r.headers)
	}
	// A turn fails when a purge deletes the row that it met before it could be read, which does not happen ten times.
	for range 10 {
		id, err := queryID(sql.Fill(enqueueSQL, names), args...)
		if err == nil {
			return Enqueued{ID: id, New: true}, nil
		}
		if !noRows(err) {
			return Enqueued{}, t.enqueueError(err)
		}
		id, err = queryID(sql.Fill(findKeySQL, names), r.tenant, r.key)
		if err == nil {
			return Enqueued{ID: id}, nil
		}
		if !noRows(err) {
			return Enqueued{}, t.enqueueError(err)
		}
	}
	return Enqueued{}, fmt.Errorf("enqueue: %s neither took the message nor has its key: look for a trigger or a row security policy that drops or hides it", t)
}

func noRows(err error) bool {
	return errors.Is(err, pgx.ErrNoRows) || errors.Is(err, databasesql.ErrNoRows)
}

// enqueueError gives the errors that a caller can act on their sentinel. Drivers agree on SQLState, not on a type.
func (t Table) enqueueError(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, databasesql.ErrTxDone) {
		return fmt.Errorf("enqueue: %w: %w", ErrTransactionRequired, err)
	}
	switch SQLState(err) {
	case "25P01", "25P02": // no active transaction, a failed one
		return fmt.Errorf("enqueue: %w: %w", ErrTransactionRequired, err)
	case "40001": // serialization failure
		return fmt.Errorf("enqueue: %w: %w", ErrConflict, err)
	}
	if misfit(err) {
		return fmt.Errorf("enqueue: %w: %s lacks what this message needs: run relay migrate: %w", ErrSchema, t, err)
	}
	return fmt.Errorf("enqueue: %w", err)
}

// misfit tells whether a statement failed because the table is not what it should be.
func misfit(err error) bool {
	switch SQLState(err) {
	case "42P01", "42703", "42P10", "3F000", // no table, no column, no unique index on tenant and key, no schema
		"42804", "42883": // a column of another type, the tenant's for one
		return true
	}
	return false
}

// SQLState gives the SQLSTATE of a Postgres error of any driver, or nothing. It never carries data, unlike a message.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}
