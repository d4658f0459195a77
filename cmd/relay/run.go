package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

type runCmd struct {
	Print []string `help:"Print the messages of these channels, mark them as sent and leave all others alone: for trying things out, never for a table that another relay serves." placeholder:"CHANNEL"`
	kong.Plugins
}

// served is one outbox that run serves.
type served struct {
	config.Outbox
	table   outbox.Table
	pool    *pgxpool.Pool
	senders relay.Senders
	options relay.Options
	closers []io.Closer // of the senders
}

// Run serves all outboxes until the context ends, or one of them cannot be served.
func (c *runCmd) Run(a *app) error {
	conf, err := a.config()
	if err != nil {
		return err
	}
	log, err := a.logger(conf.Log)
	if err != nil {
		return err
	}
	a.log.Store(log)
	var all []*served
	defer func() {
		for _, s := range all {
			s.close()
		}
	}()
	for _, o := range conf.Outboxes {
		s, err := a.prepare(conf, c.printing(o), log)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	op, err := a.operate(conf, all, log)
	if err != nil {
		return err
	}
	defer op.close()
	if err := each(a.ctx, all, func(ctx context.Context, s *served) error { return s.preflight(ctx) }); err != nil {
		return err
	}
	stopping := sync.OnceFunc(func() {
		log.Info("stopping: what is being sent may finish, a second signal ends it at once")
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(a.ctx)) // ends once that is said
	defer stop()
	defer context.AfterFunc(a.ctx, func() { stopping(); stop() })()
	return op.beside(ctx, stopping, func(ctx context.Context) error {
		return each(ctx, all, func(ctx context.Context, s *served) error {
			err := relay.Run(ctx, s.pool, s.table, s.senders, s.options)
			if err != nil {
				stopping()
			}
			return err
		})
	})
}

// each does something for all outboxes at once. The first error ends the context of the others.
func each(ctx context.Context, all []*served, do func(context.Context, *served) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		g.Go(func() error {
			if err := do(ctx, s); err != nil {
				return fmt.Errorf("%s%w", prefix(s.Outbox), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// printing is o with the channels of --print in place of its own, if there are any.
func (c *runCmd) printing(o config.Outbox) config.Outbox {
	if len(c.Print) == 0 {
		return o
	}
	o.Channels = map[string]config.Channel{}
	for _, channel := range c.Print {
		o.Channels[strings.TrimSpace(channel)] = config.Channel{Sender: "print", Options: &config.Print{}}
	}
	return o
}

// prepare makes everything that o needs, and so finds what is wrong before anything is sent.
func (a *app) prepare(conf *config.Config, o config.Outbox, log *slog.Logger) (*served, error) {
	if len(o.Channels) == 0 {
		return nil, conf.Fault(o, "channels", errors.New("there is none to send: give --print correo to try things out, or write in relay.yaml "+
			"channels: {correo: {sender: smtp, server: smtp.example.com:587, from: avisos@club.example, templates: plantillas}}"))
	}
	pooled, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(a.ctx), pooled) // it is needed to write the last results
	if err != nil {
		return nil, fmt.Errorf("%sconnect to %s: %w", prefix(o), o.Database, err)
	}
	s := &served{Outbox: o, table: o.OutboxTable(), pool: pool, senders: relay.Senders{}, options: o.RelayOptions()}
	s.options.Log = log
	if o.Name != "" {
		s.options.Log = log.With("outbox", o.Name)
	}
	if err := a.buildSenders(conf, s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *served) close() {
	for _, c := range s.closers {
		_ = c.Close() // idle connections to a server, which ends them itself
	}
	s.pool.Close()
}

// prefix names the outbox of an error if it has a name.
func prefix(o config.Outbox) string {
	if o.Name == "" {
		return ""
	}
	return fmt.Sprintf("outbox %s: ", o.Name)
}

// logger logs to standard error: text on a terminal, otherwise JSON.
func (a *app) logger(l config.Log) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{}
	if l.Level != "" {
		var level slog.Level
		if err := level.UnmarshalText([]byte(l.Level)); err != nil {
			return nil, err
		}
		opts.Level = level
	}
	if l.Format == "text" || l.Format == "" && isTerminal(a.stderr) {
		return slog.New(slog.NewTextHandler(a.stderr, opts)), nil
	}
	return slog.New(slog.NewJSONHandler(a.stderr, opts)), nil
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
