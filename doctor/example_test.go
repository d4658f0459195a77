package doctor_test

import (
	"context"
	"errors"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// A service looks at its outbox before it starts, with the options that it gives its relay.
func ExampleExamine() {
	start := func(ctx context.Context, pool *pgxpool.Pool) error {
		report, err := doctor.Examine(ctx, pool, outbox.Table{}, doctor.Options{
			Channels:     []string{"correo", "whatsapp"},
			EnqueueRoles: []string{"aplicacion"},
		})
		if err != nil {
			return err
		}
		if report.Broken > 0 {
			return errors.Join(errors.New("the outbox is broken"), report.WriteText(os.Stderr))
		}
		return nil
	}
	_ = start
}
