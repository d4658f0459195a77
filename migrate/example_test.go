package migrate_test

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// At the start of each process: the first does the work, the others wait for it.
func ExampleUp() {
	prepare := func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL")) // not through a pooler in transaction mode
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return migrate.Up(ctx, conn, outbox.Table{})
	}
	_ = prepare
}

// For a migration tool of your own. It must not wrap the script in a transaction.
func ExampleSQL() {
	script, err := migrate.SQL(outbox.Table{Schema: "mensajes", Name: "salida", TenantType: outbox.TenantText})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = os.WriteFile("migrations/0007_outbox.sql", []byte(script), 0o644)
}
