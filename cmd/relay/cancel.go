package main

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type cancelCmd struct {
	jsonFlag
	filterFlags
	changeFlags
	SetCategory string `help:"The category that they get." default:"cancelado" placeholder:"NAME"`
	SetCode     string `help:"The code that they get." default:"operador" placeholder:"CODE"`
}

// Run discards messages that wait, or says which it would.
func (c *cancelCmd) Run(a *app) error {
	return c.run(a, c.filterFlags, c.JSON, "cancelled", func(pool *pgxpool.Pool, table outbox.Table, opts admin.ChangeOptions) (admin.Result, error) {
		return admin.Cancel(a.ctx, pool, table, c.filter(), c.SetCategory, c.SetCode, opts)
	})
}
