package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

const (
	// statementTimeout bounds every question to the database, so that a silent link stops nothing for ever.
	statementTimeout = 15 * time.Second
	firstRetry       = 50 * time.Millisecond
	longestRetry     = 5 * time.Second
)

// statement runs one question to the database with a deadline of its own. The end of the relay's context does not cut it:
// a claim whose answer is thrown away leaves its rows to their lease, a result that is thrown away is sent again.
func (r *relay) statement(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	err := ask(ctx)
	if err == nil {
		if r.failing.Swap(false) {
			r.log.Info("database answers again")
		}
		return nil
	}
	if errors.Is(err, outbox.ErrSchema) {
		return err
	}
	if !r.failing.Swap(true) {
		r.log.Warn("database failed, trying again", "err", describe(err))
	}
	r.tally.failure(err)
	if r.opts.Observer.DatabaseError != nil {
		r.opts.Observer.DatabaseError(err)
	}
	if outbox.SQLState(err) == "25006" { // read-only: after a failover the pool still holds the former primary
		r.pool.Reset()
	}
	return err
}

// describe is what a log may hold of an error: of one of the server's only its SQLSTATE, since its text may quote data.
func describe(err error) string {
	if state := outbox.SQLState(err); state != "" {
		return "SQLSTATE " + state
	}
	return err.Error()
}

// outage tells errors of the world, which time may mend, from a refusal of what was to be written.
func outage(err error) bool {
	state := outbox.SQLState(err)
	if state == "" {
		return true // the connection, a deadline
	}
	switch state[:2] {
	case "22", "23", "P0": // data, constraint, raised by a trigger
		return false
	}
	return true
}

// retryDelay grows to longestRetry with half of it random, so that relays do not come back together.
func retryDelay(failures int) time.Duration {
	d := min(firstRetry<<min(failures, 10), longestRetry)
	return d/2 + rand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// connectListener dials a session of its own for the listener.
func (r *relay) connectListener(ctx context.Context) (*pgx.Conn, error) {
	pool := r.pool.Config()
	config := pool.ConnConfig
	if r.opts.ListenDSN != "" {
		var err error
		if config, err = pgx.ParseConfig(r.opts.ListenDSN); err != nil {
			return nil, errors.New("ListenDSN is not a Postgres connection string or URL")
		}
	} else if pool.BeforeConnect != nil { // short-lived passwords
		if err := pool.BeforeConnect(ctx, config); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, config)
}
