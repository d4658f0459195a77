package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// A service runs the relay beside its own work, until it is asked to stop.
func ExampleRun() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		slog.Error("connect", "err", err)
		return
	}
	defer pool.Close()
	senders := relay.Senders{"correo": transporte.Print(os.Stdout)}
	if err := relay.Run(ctx, pool, outbox.Table{}, senders, relay.Options{}); err != nil {
		slog.Error("relay", "err", err)
	}
}

// Where no process lives long, a cron job sends a batch each time.
func ExampleRunOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		slog.Error("connect", "err", err)
		return
	}
	defer pool.Close()
	senders := relay.Senders{"correo": transporte.Print(os.Stdout)}
	summary, err := relay.RunOnce(ctx, pool, outbox.Table{}, senders, relay.Options{Batch: 100, Timeout: 10 * time.Second})
	if err != nil {
		slog.Error("relay", "err", err)
		return
	}
	slog.Info("outbox", "claimed", summary.Claimed, "sent", summary.Sent, "retried", summary.Retried, "failed", summary.Failed,
		"discarded", summary.Discarded, "errors", summary.Errors, "sqlstate", summary.LastError, "warnings", summary.Warnings)
}

// Metrics come from an Observer, not from the log.
func ExampleObserver() {
	observer := relay.Observer{
		SendStart: func(ctx context.Context, a relay.Attempt) context.Context {
			fmt.Println("late by", a.Late) // from when it was due, or committed, to its send
			return ctx
		},
		SendEnd: func(_ context.Context, e relay.SendEnd) {
			if e.Abandoned {
				fmt.Println("the sender of", e.Channel, "ignores its context")
			}
		},
		Recorded: func(r relay.Recorded) {
			fmt.Println(r.Channel, r.Outcome, r.Category, r.Code)
		},
		Listening: func(err error) {
			fmt.Println("woken by commits:", err == nil)
		},
	}
	_ = relay.Options{Observer: observer}
}
