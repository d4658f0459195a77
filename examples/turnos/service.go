package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// table is the outbox: by its zero value the table outbox in the schema public.
var table outbox.Table

// prepare builds the service's tables, or brings them up to date.
func prepare(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, createTurnos); err != nil {
		return fmt.Errorf("create the table of appointments: %w", err)
	}
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return migrate.Up(ctx, c.Conn(), table) })
}

// serve sends what Book enqueues until ctx ends.
func serve(ctx context.Context, pool *pgxpool.Pool, senders relay.Senders, observer relay.Observer) error {
	return relay.Run(ctx, pool, table, senders, options(observer))
}

// concurrency is how many messages are sent at once. Each call that is not answered holds one until its timeout.
const concurrency = 32

// options are for a demo, which has no hour to wait for a retry. The zero value suits most services.
func options(observer relay.Observer) relay.Options {
	return relay.Options{
		Concurrency: concurrency,
		Timeout:     time.Second,
		Backoff:     outbox.Backoff{Base: 300 * time.Millisecond},
		Observer:    observer,
		Log:         slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}
