package main

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type resumeCmd struct{ pauseCmd }

// Run takes a pause away, or all.
func (c *resumeCmd) Run(a *app) error {
	return c.run(a, "resumed", "was not paused by itself", func(pool *pgxpool.Pool, table outbox.Table) (bool, error) {
		if c.All {
			n, err := admin.ResumeAll(a.ctx, pool, table)
			return n > 0, err
		}
		return admin.Resume(a.ctx, pool, table, c.Channel, c.Tenant)
	})
}
