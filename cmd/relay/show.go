package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type showCmd struct {
	jsonFlag
	destinationFlag
	ShowData bool   `help:"Show the data and the headers."`
	ID       string `arg:"" help:"Of the message."`
}

// Run prints one message.
func (c *showCmd) Run(a *app) error {
	return a.withTable(admin.Filter{IDs: []string{c.ID}}, func(pool *pgxpool.Pool, table outbox.Table) error {
		m, err := admin.Show(a.ctx, pool, table, c.ID)
		if err != nil {
			return err
		}
		c.mask(&m)
		if !c.ShowData {
			m.Data, m.Headers = nil, nil
		}
		if c.JSON {
			return a.printJSON(m)
		}
		return c.print(a, m)
	})
}

func (c *showCmd) print(a *app, m admin.Message) error {
	lease := clock(m.LeaseUntil)
	if m.Leased {
		lease += " (valid)"
	}
	out := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"id", m.ID}, {"tenant", m.TenantID}, {"channel", m.Channel}, {"destination", m.Destination}, {"template", m.Template},
		{"key", m.Key}, {"ordering key", m.OrderingKey}, {"state", string(m.State)}, {"attempts", fmt.Sprintf("%d of %d", m.Attempts, m.MaxAttempts)},
		{"failure", cmp.Or(m.Category, "-") + "/" + cmp.Or(m.Code, "-")}, {"external id", m.ExternalID}, {"scheduled for", clock(m.ScheduledFor)},
		{"next attempt", clock(m.NextAttempt)}, {"lease until", lease}, {"sent", clock(m.Sent)}, {"created", clock(m.Created)},
		{"changed", clock(m.Changed)}, {"data", string(m.Data)}, {"headers", string(m.Headers)},
	} {
		if line[1] == "" || line[1] == "-" || line[1] == "-/-" {
			continue
		}
		fmt.Fprintf(out, "%s\t%s\n", line[0], printable(line[1]))
	}
	return out.Flush()
}
