package relay

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// longestStatement bounds every question to the database, so that a silent link stops nothing for ever.
const longestStatement = 15 * time.Second

// statement runs one question to the database with a deadline of its own, and counts and reports its failure. The end of
// ctx cuts it, so claims and results are asked for without the relay's: a claim whose answer is thrown away leaves its rows
// to their lease, a result that is thrown away is sent again.
func (r *relay) statement(ctx context.Context, ask func(context.Context) error) error {
	// An answer that takes longer than half the lease comes too late for the rows that it is about.
	limited, cancel := context.WithTimeout(ctx, min(longestStatement, r.opts.lease()/2))
	defer cancel()
	err := ask(limited)
	if err == nil {
		if r.failing.Swap(false) {
			r.log.Info("database answers again")
		}
		return nil
	}
	if ctx.Err() != nil || errors.Is(err, outbox.ErrSchema) {
		return err
	}
	switch {
	case rowHeld(err):
		r.log.Warn("another transaction holds a row, trying again", "err", retry.Reason(err))
	case !outage(err):
		r.log.Warn("database refused a write", "err", retry.Reason(err))
	case !r.failing.Swap(true):
		r.log.Warn("database failed, trying again", "err", retry.Reason(err))
	}
	r.tally.failure(err)
	if r.opts.Observer.DatabaseError != nil {
		r.opts.Observer.DatabaseError(err)
	}
	if outbox.SQLState(err) == "25006" { // read-only: after a failover the pool still holds the former primary
		r.pool.Reset()
	}
	r.dropSilent(err)
	return err
}

// dropSilent lets go of the pool's connections after a timeout. Those that lie idle are likely to be dead, too, and each
// would cost another timeout.
func (r *relay) dropSilent(err error) {
	stat := r.pool.Stat()
	busy := stat.AcquiredConns() >= stat.MaxConns() // the application has them all, and they are alive
	if errors.Is(err, context.DeadlineExceeded) && !busy {
		r.pool.Reset()
	}
}

// outage tells errors of the world, which time may mend for all rows alike, from a refusal of what was to be written: data,
// a constraint, a trigger with a code of its own. Only the first can be listed.
func outage(err error) bool {
	state := outbox.SQLState(err)
	if state == "" {
		return true // the connection, a deadline
	}
	switch state[:2] {
	case "08", "28", "3D", "57", "58", // connection, log-in, database, shutdown, disk
		"0A", "25", "26", "40", "53", "54", "XX", // old plan, read-only, lost statement, deadlock, resources, limits, internal
		"3F", "42": // schema, table or right that is missing
		return true
	}
	return state[:2] == "55" && !rowHeld(err)
}

// rowHeld says that another transaction held a row for longer than a result waits for it. A claim never does.
func rowHeld(err error) bool { return outbox.SQLState(err) == "55P03" }

// connectListener dials a session of its own for the listener.
func (r *relay) connectListener(ctx context.Context) (*pgx.Conn, error) {
	return notify.Dial(ctx, r.pool, r.opts.ListenDSN)
}
