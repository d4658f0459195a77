package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/sql"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const (
	tenant  = "3f1b6a52-9c0e-4a7c-8f0d-2b9f5f1f7a10"
	channel = "correo"
)

//go:embed fill_outbox.sql
var fillOutboxSQL string

// ours is a relay of this project with the given options and trigger.
func ours(name, about string, trigger trigger, opts relay.Options) contender {
	return contender{name: name, about: about, open: func(ctx context.Context, db *database) (system, error) {
		if err := migrateOutbox(ctx, db, trigger); err != nil {
			return nil, err
		}
		return &outboxSystem{db: db, options: opts, senders: handing}, nil
	}}
}

// makeSenders makes the senders of one relay, and what ends them. They call handle when a message has arrived.
type makeSenders func(handle) (senders relay.Senders, end func() error, err error)

// trigger is how an insert wakes the relay.
type trigger int

const (
	noTrigger    trigger = iota
	plainTrigger         // one NOTIFY for each commit, in the simplest form
	ownTrigger           // this project's
)

//go:embed plain_trigger.sql
var plainTriggerSQL string

func migrateOutbox(ctx context.Context, db *database, trigger trigger) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := migrate.Up(ctx, conn.Conn(), outbox.Table{}); err != nil {
		return err
	}
	names := outbox.Table{}.Names()
	if trigger != ownTrigger {
		_, err = conn.Exec(ctx, sql.Fill("drop trigger {{trigger}} on {{table}}", names))
	}
	if err == nil && trigger == plainTrigger {
		_, err = conn.Exec(ctx, sql.Fill(plainTriggerSQL, names))
	}
	return err
}

// outboxSystem is an outbox table and the relays that serve it.
type outboxSystem struct {
	db      *database
	options relay.Options
	senders makeSenders
}

// insert is the product's own Enqueue.
func (s *outboxSystem) insert(ctx context.Context, tx pgx.Tx, n int, at time.Time) error {
	_, err := outbox.Table{}.Enqueue(ctx, tx, outbox.Message{TenantID: tenant, Channel: channel, Destination: "ana@example.com",
		Template: "reminder", Data: newPayload(n), IdempotencyKey: strconv.Itoa(n), ScheduledFor: at})
	return err
}

func (s *outboxSystem) fill(ctx context.Context, from, to int) error {
	return fillOutbox(ctx, s.db.pool, channel, from, to, "pendiente", 0)
}

// fillOutbox writes rows [from, to) as Enqueue would: due now or after a wait, or finished long ago.
func fillOutbox(ctx context.Context, pool *pgxpool.Pool, channel string, from, to int, state outbox.State, wait time.Duration) error {
	data, err := json.Marshal(newPayload(0))
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local session_replication_role = replica; set local synchronous_commit = off"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql.Fill(fillOutboxSQL, outbox.Table{}.Names()), from, to, string(state), wait, tenant, channel, string(data))
		return err
	})
}

// start runs a relay with a pool of its own, as a process of its own would have.
func (s *outboxSystem) start(ctx context.Context, handle handle) (stop func() error, err error) {
	senders, end, err := s.senders(handle)
	if err != nil {
		return nil, err
	}
	pool, err := newPool(ctx, s.db.dsn)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	opts := s.options
	opts.Log = slog.New(slog.DiscardHandler)
	listening := make(chan struct{}, 1)
	heard := opts.Observer.Listening
	opts.Observer.Listening = func(err error) {
		if err == nil {
			ring(listening)
		}
		if heard != nil {
			heard(err)
		}
	}
	failed := opts.Observer.DatabaseError
	opts.Observer.DatabaseError = func(err error) {
		fmt.Println("relay:", err) // a benchmark of a failing relay says nothing
		if failed != nil {
			failed(err)
		}
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Run(running, pool, outbox.Table{}, senders, opts)
	}()
	stop = func() error {
		cancel()
		err := <-ended
		pool.Close()
		return errors.Join(err, end())
	}
	select {
	case <-listening:
		return stop, nil
	case <-time.After(10 * time.Second):
		return nil, errors.Join(errors.New("the relay does not listen"), stop())
	}
}

// handing makes a sender that decodes a message and hands it to handle.
func handing(handle handle) (relay.Senders, func() error, error) {
	sender := transporte.Func(func(_ context.Context, m transporte.Message) (string, error) {
		at := time.Now()
		n, err := decode(m.Data)
		if err != nil {
			return "", err
		}
		handle(n, at)
		return "", nil
	})
	return relay.Senders{channel: sender}, func() error { return nil }, nil
}

func (s *outboxSystem) unfinished(ctx context.Context) (left bool, err error) {
	err = s.db.pool.QueryRow(ctx, "select exists (select from outbox where estado in ('pendiente', 'procesando') and canal = $1)", channel).Scan(&left)
	return left, err
}

func (s *outboxSystem) empty(ctx context.Context) error {
	_, err := s.db.pool.Exec(ctx, "truncate outbox")
	return err
}

func ring(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
