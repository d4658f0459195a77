package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/config"
)

// app is what a command works with: kong hands it to its Run.
type app struct {
	ctx            context.Context // of the process: ends with the first signal
	env            func(string) (string, bool)
	stdin          io.Reader
	stdout, stderr io.Writer
	source         config.Source
	grammar        *kong.Node
	log            atomic.Pointer[slog.Logger] // of run, for what is said of the process as a whole
}

// jsonFlag is for commands that can print JSON.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// config is the effective configuration, only with the outbox that --outbox names if it does.
func (a *app) config() (*config.Config, error) { return config.Load(a.source) }

// outbox is the one outbox that a command is about.
func (a *app) outbox() (config.Outbox, error) {
	c, err := a.config()
	if err != nil {
		return config.Outbox{}, err
	}
	if len(c.Outboxes) > 1 {
		return config.Outbox{}, fmt.Errorf("%w: the configuration has %d outboxes: choose one with --outbox", errUsage, len(c.Outboxes))
	}
	return c.Outboxes[0], nil
}

// connectTimeout bounds a connection that a person waits for.
const connectTimeout = 10 * time.Second

// pool is a pool on the database of o that has proven that it can connect.
func (a *app) pool(o config.Outbox) (*pgxpool.Pool, error) {
	conf, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(a.ctx, conf)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.Database, err)
	}
	ctx, cancel := context.WithTimeout(a.ctx, connectTimeout)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to %s: %w", o.Database, err)
	}
	return pool, nil
}

// conn is one session with the database of o.
func (a *app) conn(o config.Outbox) (*pgx.Conn, error) {
	conf, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, conf.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.Database, err)
	}
	return conn, nil
}

func poolConfig(o config.Outbox) (*pgxpool.Config, error) {
	if o.Database == "" {
		return nil, &config.Error{Text: "there is no database: set DATABASE_URL, or database in relay.yaml, " +
			"to a connection string such as postgres://user@host/database"}
	}
	conf, err := pgxpool.ParseConfig(string(o.Database))
	if err != nil {
		return nil, fmt.Errorf("the pool's options in %s: %w", o.Database, errUsage)
	}
	if o.Pool.MaxConnections > 0 {
		conf.MaxConns = o.Pool.MaxConnections
	}
	if conf.ConnConfig.RuntimeParams["application_name"] == "" {
		conf.ConnConfig.RuntimeParams["application_name"] = "relay"
	}
	return conf, nil
}

// printJSON writes v to standard output as one line.
func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
