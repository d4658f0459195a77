package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/mafesoftware/outbox-relay/relay"
)

// patience is how long a run may go without the end of a message before the missing ones are given up.
const patience = 20 * time.Second

// demo runs the same load with a relay on one database and with a poll every second on another, one after the other so
// that neither disturbs the other's figures.
func demo(ctx context.Context, wokenDSN, polledDSN string, l load, out io.Writer) error {
	server, err := describe(ctx, wokenDSN)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s. %d bookings, one every %v on average, each with a confirmation now and a reminder %v later:\n\n",
		server, len(l.bookings), l.pause, l.remindIn)
	woken, err := measure(ctx, wokenDSN, serve, l, out)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\nThe same bookings again, now with a poll every second ...\n")
	polled, err := measure(ctx, polledDSN, pollEverySecond, l, io.Discard)
	if err != nil {
		return err
	}
	return report(out, woken, polled)
}

// describe says what the figures depend on.
func describe(ctx context.Context, dsn string) (server string, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const ask = `select format('PostgreSQL %s, fsync %s, synchronous_commit %s', current_setting('server_version'),
		current_setting('fsync'), current_setting('synchronous_commit'))`
	err = conn.QueryRow(ctx, ask).Scan(&server)
	return server, err
}

// pollEverySecond is the alternative to serve: a job that runs once a second and sends what it finds. The same claims and
// senders, but nothing wakes it. A run may begin while others still wait for a provider.
func pollEverySecond(ctx context.Context, pool *pgxpool.Pool, senders relay.Senders, observer relay.Observer) error {
	opts := options(observer)
	opts.Batch = 500 // all that there is
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var g errgroup.Group
	for {
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-tick.C:
			g.Go(func() error {
				_, err := relay.RunOnce(ctx, pool, table, senders, opts)
				return err
			})
		}
	}
}

// measure builds the service in an empty database, lets the bookings come in while work sends, and waits for the last
// message.
func measure(
	ctx context.Context, dsn string,
	work func(context.Context, *pgxpool.Pool, relay.Senders, relay.Observer) error,
	l load, out io.Writer,
) (result, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return result{}, err
	}
	config.ConnConfig.Tracer = commitTracer{}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	if err := prepare(ctx, pool); err != nil {
		return result{}, err
	}
	s := newStub()
	defer s.close()
	senders, err := newSenders(s.server.URL)
	if err != nil {
		return result{}, err
	}

	j := newJournal()
	g, ctx := errgroup.WithContext(ctx)
	working, stop := context.WithCancel(ctx)
	g.Go(func() error {
		defer close(j.lines) // nothing is recorded after work returns
		return work(working, pool, j.watch(senders), relay.Observer{Recorded: j.recorded})
	})
	g.Go(func() error {
		defer stop()
		if err := l.run(ctx, pool, j); err != nil {
			return err
		}
		return j.wait(ctx, patience)
	})
	j.print(out)
	if err := g.Wait(); err != nil {
		return result{}, err
	}
	return j.result(s), nil
}
