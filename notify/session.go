package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

const (
	firstDelay     = 50 * time.Millisecond // before the second attempt to connect, doubling
	longestDelay   = 5 * time.Second
	connectTimeout = 5 * time.Second
)

// The application_name of a relay's own sessions, by which a person finds them in pg_stat_activity.
const (
	ListenSession = "outbox relay: listen"
	WatchSession  = "outbox relay: watch"
)

// SessionConfig is how to dial a session of its own: to dsn or, when that is empty, as the pool dials its own, with a
// password that may be short-lived.
func SessionConfig(ctx context.Context, pool *pgxpool.Pool, dsn string) (*pgx.ConnConfig, error) {
	if dsn != "" {
		config, err := pgx.ParseConfig(dsn)
		if err != nil { // which quotes the string, and with it perhaps a password
			return nil, errors.New("ListenDSN is not a Postgres connection string or URL")
		}
		return config, nil
	}
	of := pool.Config()
	if of.BeforeConnect != nil {
		if err := of.BeforeConnect(ctx, of.ConnConfig); err != nil {
			return nil, err
		}
	}
	return of.ConnConfig, nil
}

// backoff is the wait after n failed attempts, half of it at random.
func backoff(n int) time.Duration {
	d := min(firstDelay<<min(n, 10), longestDelay)
	return d/2 + rand.N(d/2)
}

// Dial opens a session of its own, outside the pool: by dsn or, if that is empty, as the pool does.
func Dial(ctx context.Context, pool *pgxpool.Pool, dsn string) (*pgx.Conn, error) {
	config, err := SessionConfig(ctx, pool, dsn)
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, config)
}

// Open is Dial, for a session that stays. It has keepalives, and name as its application_name.
func Open(ctx context.Context, pool *pgxpool.Pool, dsn, name string) (*pgx.Conn, error) {
	conn, err := Dial(ctx, pool, dsn)
	if err != nil {
		return nil, err
	}
	return conn, prepareSession(ctx, conn, name)
}

// prepareSession gives a session keepalives by which the server, too, forgets a dead relay in seconds, and lets it stay
// idle. Not as start-up parameters, which a pooler may refuse. It closes conn when it fails.
func prepareSession(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; "+
		"set idle_session_timeout = 0; set application_name = '"+name+"'")
	if err != nil {
		_ = conn.Close(ctx)
	}
	return err
}

// describe is what a log may hold of an error: of one of the server's only its SQLSTATE.
func describe(err error) string {
	switch state := outbox.SQLState(err); {
	case err == nil:
		return ""
	case state != "":
		return "SQLSTATE " + state
	}
	return err.Error()
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

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
