package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/internal/plural"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type purgeCmd struct {
	jsonFlag
	OlderThan config.Duration `help:"Delete messages whose last change is longer ago than this, such as 30d." required:"" placeholder:"TIME"`
	State     []string        `help:"Only these: enviado, fallido, descartado. Default all three." placeholder:"STATE"`
}

// Run deletes finished messages.
func (c *purgeCmd) Run(a *app) error {
	if c.OlderThan <= 0 {
		return fmt.Errorf("%w: --older-than must be above 0, such as 30d, not %v", errUsage, c.OlderThan)
	}
	var states []outbox.State
	for _, s := range c.State {
		states = append(states, outbox.State(s))
		if !outbox.State(s).Terminal() {
			return fmt.Errorf("%w: only enviado, fallido and descartado can be purged, not %q", errUsage, s)
		}
	}
	return a.withTable(admin.Filter{}, func(pool *pgxpool.Pool, table outbox.Table) error {
		bar := a.progress("deleted", 0)
		deleted, err := table.Purge(a.ctx, &purging{DB: pool, bar: bar}, time.Now().Add(-time.Duration(c.OlderThan)), states...)
		bar.end()
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(map[string]int64{"deleted": deleted})
		}
		_, err = fmt.Fprintf(a.stdout, "%s deleted\n", plural.Of(deleted, "message"))
		return err
	})
}

// purging draws a bar for the steps of a purge.
type purging struct {
	outbox.DB
	bar     *progress
	deleted int
}

// Exec is a step.
func (p *purging) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	tag, err := p.DB.Exec(ctx, statement, args...)
	p.deleted += int(tag.RowsAffected())
	p.bar.draw(p.deleted)
	return tag, err
}
