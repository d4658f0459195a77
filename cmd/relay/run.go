package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

type runCmd struct {
	Print []string `help:"Print the messages of these channels, mark them as sent and leave all others alone: for trying things out, never for a table that another relay serves." placeholder:"CHANNEL,..."`
	kong.Plugins
}

// served is one outbox that run serves.
type served struct {
	config.Outbox
	table   outbox.Table
	pool    *pgxpool.Pool
	senders relay.Senders
	options relay.Options
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
	var all []*served
	defer func() {
		for _, s := range all {
			s.close()
		}
	}()
	for _, o := range conf.Outboxes {
		s, err := a.prepare(c.printing(o), log)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	g, ctx := errgroup.WithContext(a.ctx)
	for _, s := range all {
		g.Go(func() error { return relay.Run(ctx, s.pool, s.table, s.senders, s.options) })
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
func (a *app) prepare(o config.Outbox, log *slog.Logger) (*served, error) {
	if len(o.Channels) == 0 {
		return nil, fmt.Errorf("%w: %sthere is no channel to send: give --print correo to try things out, or write channels in relay.yaml, such as "+
			"channels: {correo: {sender: smtp, server: smtp.example.com:587, from: avisos@club.example, templates: plantillas}}", errUsage, prefix(o))
	}
	conf, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(a.ctx), conf) // it is needed to write the last results
	if err != nil {
		return nil, fmt.Errorf("%sconnect to %s: %w", prefix(o), o.Database, err)
	}
	s := &served{Outbox: o, table: o.OutboxTable(), pool: pool, senders: relay.Senders{}, options: o.RelayOptions()}
	s.options.Log = log
	if o.Name != "" {
		s.options.Log = log.With("outbox", o.Name)
	}
	if err := a.buildSenders(s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *served) close() { s.pool.Close() }

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
			return nil, errors.Join(errUsage, err)
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
