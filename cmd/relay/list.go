package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type listCmd struct {
	jsonFlag
	destinationFlag
	filterFlags
	Limit int    `help:"Most messages, 0 for all." default:"50" placeholder:"N"`
	After string `help:"Go on where another list ended." placeholder:"PLACE"`
}

// destinationFlag is for commands that show whom messages are for.
type destinationFlag struct {
	ShowDestinations bool `help:"Show destinations in full."`
}

func (d destinationFlag) mask(m *admin.Message) {
	if !d.ShowDestinations {
		m.Destination = masked(m.Destination)
	}
}

// Run prints messages, page by page.
func (c *listCmd) Run(a *app) error {
	if c.Limit < 0 {
		return fmt.Errorf("%w: --limit must be 0 (all) or more, not %d", errUsage, c.Limit)
	}
	return a.withTable(c.filter(), func(pool *pgxpool.Pool, table outbox.Table) error {
		out := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		if !c.JSON {
			fmt.Fprintln(out, "ID\tSTATE\tCHANNEL\tTENANT\tDESTINATION\tATTEMPTS\tCHANGED\tFAILURE")
		}
		at, left := admin.Cursor(c.After), c.Limit
		for {
			size := admin.MaxPage
			if c.Limit > 0 {
				size = min(size, left)
			}
			p, err := admin.List(a.ctx, pool, table, c.filter(), at, size)
			if err != nil {
				return err
			}
			for _, m := range p.Messages {
				c.mask(&m)
				if err := c.print(a, out, m); err != nil {
					return err
				}
			}
			left -= len(p.Messages)
			if at = p.Next; at == "" || c.Limit > 0 && left == 0 {
				break
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if at != "" {
			fmt.Fprintf(a.stderr, "there may be more: --after '%s'\n", at)
		}
		return nil
	})
}

func (c *listCmd) print(a *app, out io.Writer, m admin.Message) error {
	if c.JSON {
		return a.printJSON(m)
	}
	failure := ""
	if m.Category != "" {
		failure = m.Category + "/" + m.Code
	}
	_, err := fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\n", m.ID, m.State, printable(m.Channel), printable(m.TenantID),
		printable(m.Destination), m.Attempts, m.MaxAttempts, clock(m.Changed), printable(failure))
	return err
}

// clock is a time for people, to the second and with its zone.
func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02T15:04:05Z07:00")
}

// withTable opens the outbox that is meant, after a look at the filter: what cannot be needs no database.
func (a *app) withTable(f admin.Filter, work func(*pgxpool.Pool, outbox.Table) error) error {
	o, err := a.outbox()
	if err != nil {
		return err
	}
	if err := f.Validate(o.OutboxTable()); err != nil {
		return err
	}
	pool, err := a.pool(o)
	if err != nil {
		return err
	}
	defer pool.Close()
	return work(pool, o.OutboxTable())
}

// warnUnknown says when a channel has no sender in this configuration: it may be misspelt.
func (a *app) warnUnknown(o config.Outbox, channel string) {
	if _, known := o.Channels[channel]; channel == "" || known || len(o.Channels) == 0 {
		return
	}
	fmt.Fprintf(a.stderr, "relay: the configuration has no channel %q: look whether it is spelt right\n", printable(strings.TrimSpace(channel)))
}
