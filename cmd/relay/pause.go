package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type pauseCmd struct {
	jsonFlag
	Channel string `help:"The messages of this channel." placeholder:"NAME"`
	Tenant  string `help:"The messages of this tenant; with --channel, only those of both." placeholder:"ID"`
	All     bool   `help:"All messages."`
}

// Run has all relays leave messages alone.
func (c *pauseCmd) Run(a *app) error {
	return c.run(a, "paused", "was paused already", func(pool *pgxpool.Pool, table outbox.Table) (bool, error) {
		return admin.Pause(a.ctx, pool, table, c.Channel, c.Tenant)
	})
}

// pausesPrinted is what pause and resume print as JSON.
type pausesPrinted struct {
	Changed bool           `json:"changed"`
	Pauses  []outbox.Pause `json:"pauses"`
}

// run changes the pauses and prints what is paused now.
func (c *pauseCmd) run(a *app, did, didNot string, change func(*pgxpool.Pool, outbox.Table) (bool, error)) error {
	scoped := c.Channel != "" || c.Tenant != ""
	if scoped == c.All {
		return fmt.Errorf("%w: say what is meant by --channel, --tenant or both, or --all", errUsage)
	}
	o, err := a.outbox()
	if err != nil {
		return err
	}
	a.warnUnknown(o, c.Channel)
	return a.withTable(admin.Filter{TenantID: c.Tenant}, func(pool *pgxpool.Pool, table outbox.Table) error {
		changed, err := change(pool, table)
		if err != nil {
			return err
		}
		pauses, err := table.Pauses(a.ctx, pool)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(pausesPrinted{changed, pauses})
		}
		if !changed {
			did = didNot
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", scope(c.Channel, c.Tenant), did)
		return a.printPauses(pauses)
	})
}

func scope(channel, tenant string) string {
	switch {
	case channel == "" && tenant == "":
		return "all messages"
	case tenant == "":
		return "channel " + printable(channel)
	case channel == "":
		return "tenant " + printable(tenant)
	}
	return "channel " + printable(channel) + " of tenant " + printable(tenant)
}

func (a *app) printPauses(pauses []outbox.Pause) error {
	for _, p := range pauses {
		if _, err := fmt.Fprintf(a.stdout, "paused since %s: %s\n", clock(&p.Since), scope(p.Channel, p.TenantID)); err != nil {
			return err
		}
	}
	return nil
}
