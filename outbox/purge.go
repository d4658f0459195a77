package outbox

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed purge.sql
var purgeSQL string

// purgeBlocks is how many of the table's 8 kB blocks one transaction of a purge covers: about a thousand messages.
const purgeBlocks = 64

// DB is what statements outside a transaction of the caller's need: a pool or a connection of pgx.
type DB interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, statement string, args ...any) pgx.Row
}

// Purge deletes messages in one of the terminal states (all three if none is given) that were last touched before the
// given time, and returns how many. It goes through the table once, in many small transactions, so it may run while
// relays work and on several hosts at once; rows that somebody has locked stay for the next time. When ctx ends or the
// database fails, what is deleted stays deleted, and is counted.
func (t Table) Purge(ctx context.Context, db DB, before time.Time, states ...State) (deleted int64, err error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	if before.IsZero() {
		return 0, fmt.Errorf("%w: Purge needs a time before which messages are deleted", ErrInvalidOptions)
	}
	if len(states) == 0 {
		states = []State{Sent, Failed, Discarded}
	}
	names := make([]string, len(states))
	for i, s := range states {
		if !s.Terminal() {
			return 0, fmt.Errorf("%w: Purge deletes only enviado, fallido and descartado, not %q", ErrInvalidOptions, s)
		}
		names[i] = string(s)
	}
	var blocks int64
	const size = "select pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint"
	if err := db.QueryRow(ctx, size, t.String()).Scan(&blocks); misfit(err) {
		return 0, fmt.Errorf("purge: %w: there is no table %s: run relay migrate: %w", ErrSchema, t, err)
	} else if err != nil {
		return 0, fmt.Errorf("purge %s: %w", t, err)
	}
	statement := sql.Fill(purgeSQL, t.Names())
	for block := int64(0); block < blocks; block += purgeBlocks {
		tag, err := db.Exec(ctx, statement, tid(block), tid(block+purgeBlocks), names, before)
		if err != nil {
			return deleted, fmt.Errorf("purge %s (deleted=%d): %w", t, deleted, err)
		}
		deleted += tag.RowsAffected()
	}
	return deleted, nil
}

func tid(block int64) string { return fmt.Sprintf("(%d,0)", block) }
