package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// longestAnswer bounds each question about the lock.
const longestAnswer = 5 * time.Second

// turn is the right to do the work: an advisory lock of a session that is kept between the rounds, so that the other
// relays need not go through the table, too. Purges at the same time would be right and a waste, so nothing looks whether
// the lock is still held during a round.
//
// Through a pooler in transaction mode the lock of a session would stay behind with a server's session that nobody can
// find again. There the lock is a transaction's, and ends with the round.
type turn struct {
	pool *pgxpool.Pool
	dsn  string
	lock outbox.Lock

	conn   *pgx.Conn
	pooled bool
}

// begin tells whether the round is ours.
func (t *turn) begin(ctx context.Context) (ours bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestAnswer)
	defer cancel()
	if t.conn != nil && !t.pooled {
		if t.conn.Ping(ctx) == nil {
			return true, nil
		}
		t.end()
	}
	if err := t.dial(ctx); err != nil {
		return false, err
	}
	try := "select pg_try_advisory_lock($1::int, $2::int)"
	if t.pooled {
		if _, err := t.conn.Exec(ctx, "begin; set local idle_in_transaction_session_timeout = 0"); err != nil {
			t.end()
			return false, fmt.Errorf("begin a round of retention: %w", err)
		}
		try = "select pg_try_advisory_xact_lock($1::int, $2::int)"
	}
	err = t.conn.QueryRow(ctx, try, t.lock.Class, t.lock.Key).Scan(&ours)
	if err != nil || !ours {
		t.end()
	}
	if err != nil {
		return false, fmt.Errorf("ask for the turn of retention: %w", err)
	}
	return ours, nil
}

func (t *turn) dial(ctx context.Context) (err error) {
	t.conn, err = notify.Open(ctx, t.pool, t.dsn, "outbox relay: retention")
	if err != nil {
		return fmt.Errorf("connect for retention: %w", err)
	}
	var pid uint32
	if err := t.conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		t.end()
		return fmt.Errorf("connect for retention: %w", err)
	}
	t.pooled = pid != t.conn.PgConn().PID() // a pooler gives its clients numbers of its own
	return nil
}

// pause ends a round. Where the lock is a session's, it stays ours.
func (t *turn) pause() {
	if t.pooled {
		t.end()
	}
}

// end gives the turn to others.
func (t *turn) end() {
	if t.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if t.pooled {
		_, _ = t.conn.Exec(ctx, "rollback")
	}
	_ = t.conn.Close(ctx)
	t.conn, t.pooled = nil, false
}
