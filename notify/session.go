package notify

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const connectTimeout = 5 * time.Second

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

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
