package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSettings are those of River's settings that decide its speed.
type riverSettings struct {
	fetchCooldown, fetchPollInterval time.Duration // zero: River's default, 100 ms and 1 s
	maxWorkers                       int           // River has no default
}

var (
	// riverDefault is River as its documentation begins: 100 workers, everything else unset.
	riverDefault = riverContender("River, default", "riverqueue/river with 100 workers, as its first example has it, and nothing else set",
		riverSettings{maxWorkers: 100})
	// riverTuned has the settings of River's own benchmark command. Others were tried for the backlog and were slower.
	riverTuned = riverContender("River, tuned", "FetchCooldown 2 ms, FetchPollInterval 20 ms, 2,000 workers: the settings of River's own benchmark",
		riverSettings{fetchCooldown: 2 * time.Millisecond, fetchPollInterval: 20 * time.Millisecond, maxWorkers: 2000})
	// riverFastest has the least latency that River can be set to: it asks the database a thousand times a second.
	riverFastest = riverContender("River, 1 ms poll", "FetchCooldown 1 ms, FetchPollInterval 1 ms: River's minimum; 100 workers",
		riverSettings{fetchCooldown: river.FetchCooldownMin, fetchPollInterval: river.FetchPollIntervalMin, maxWorkers: 100})
)

func riverContender(name, about string, settings riverSettings) contender {
	return contender{name: name, about: about, open: func(ctx context.Context, db *database) (system, error) {
		migrator, err := rivermigrate.New(riverpgxv5.New(db.pool), &rivermigrate.Config{Logger: quiet})
		if err != nil {
			return nil, err
		}
		if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return nil, err
		}
		s := &riverSystem{db: db, settings: settings}
		// It inserts; with the same settings as the one that works, since FetchCooldown also limits how often it notifies.
		if s.inserter, err = s.client(db.pool, nil); err != nil {
			return nil, err
		}
		return s, nil
	}}
}

var quiet = slog.New(slog.DiscardHandler)

type riverSystem struct {
	db       *database
	settings riverSettings
	inserter *river.Client[pgx.Tx]
}

type riverArgs struct{ payload }

func (riverArgs) Kind() string { return "reminder" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	handle handle
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.handle(job.Args.N, time.Now())
	return nil
}

// client inserts, and works when handle is set.
func (s *riverSystem) client(pool *pgxpool.Pool, handle handle) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handle: handle})
	config := &river.Config{Logger: quiet, Workers: workers,
		FetchCooldown: s.settings.fetchCooldown, FetchPollInterval: s.settings.fetchPollInterval}
	if handle != nil {
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.settings.maxWorkers}}
	}
	return river.NewClient(riverpgxv5.New(pool), config)
}

func (s *riverSystem) insert(ctx context.Context, tx pgx.Tx, n int, at time.Time) error {
	_, err := s.inserter.InsertTx(ctx, tx, riverArgs{newPayload(n)}, &river.InsertOpts{ScheduledAt: at})
	return err
}

func (s *riverSystem) fill(ctx context.Context, from, to int) error {
	for from < to {
		var jobs []river.InsertManyParams
		for ; from < to && len(jobs) < 5000; from++ {
			jobs = append(jobs, river.InsertManyParams{Args: riverArgs{newPayload(from)}})
		}
		if _, err := s.inserter.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

func (s *riverSystem) start(ctx context.Context, handle handle) (stop func() error, err error) {
	pool, err := newPool(ctx, s.db.dsn)
	if err != nil {
		return nil, err
	}
	client, err := s.client(pool, handle)
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return func() error {
		defer pool.Close()
		return client.Stop(context.WithoutCancel(ctx))
	}, nil
}

func (s *riverSystem) unfinished(ctx context.Context) (left bool, err error) {
	err = s.db.pool.QueryRow(ctx, `select exists (select from river_job
		where state in ('available', 'pending', 'retryable', 'running', 'scheduled'))`).Scan(&left)
	return left, err
}

func (s *riverSystem) empty(ctx context.Context) error {
	_, err := s.db.pool.Exec(ctx, "truncate river_job")
	return err
}
