package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// The message becomes visible with the booking, or not at all.
func ExampleTable_Enqueue() {
	book := func(ctx context.Context, pool *pgxpool.Pool, tenantID, bookingID, phone string, at time.Time) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "insert into turnos (id, hora) values ($1, $2)", bookingID, at); err != nil {
				return err
			}
			_, err := outbox.Table{}.Enqueue(ctx, tx, outbox.Message{
				TenantID:       tenantID,
				Channel:        "whatsapp",
				Destination:    phone,
				Template:       "turno_recordatorio",
				Data:           map[string]any{"hora": at},
				IdempotencyKey: "turno:" + bookingID + ":recordatorio", // booking twice reminds once
				ScheduledFor:   at.Add(-24 * time.Hour),
			})
			return err
		})
	}
	_ = book
}

// A table with names of its own, and database/sql with any driver.
func ExampleTable_EnqueueSQL() {
	table := outbox.Table{Schema: "mensajes", Name: "salida", TenantColumn: "empresa", TenantType: outbox.TenantText}
	cancel := func(ctx context.Context, db *sql.DB, company, bookingID, address string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "delete from turnos where id = $1", bookingID); err != nil {
			return err
		}
		answer, err := table.EnqueueSQL(ctx, tx, outbox.Message{
			TenantID:       company,
			Channel:        "correo",
			Destination:    address,
			Template:       "turno_cancelado",
			IdempotencyKey: "turno:" + bookingID + ":cancelado",
		})
		if err != nil {
			return err
		}
		fmt.Println("message", answer.ID, "is new:", answer.New)
		return tx.Commit()
	}
	_ = cancel
}

// One round trip for all. Each answer stands at the place of its message.
func ExampleTable_EnqueueMany() {
	announce := func(ctx context.Context, tx pgx.Tx, tenantID string, addresses []string) error {
		messages := make([]outbox.Message, len(addresses))
		for i, address := range addresses {
			messages[i] = outbox.Message{
				TenantID:       tenantID,
				Channel:        "correo",
				Destination:    address,
				Template:       "novedades",
				IdempotencyKey: "novedades:2026-11:" + address,
			}
		}
		answers, err := outbox.Table{}.EnqueueMany(ctx, tx, messages)
		if errors.Is(err, outbox.ErrInvalidOptions) {
			return fmt.Errorf("nothing was written: %w", err) // the error says which message, and which field
		}
		if err != nil {
			return err
		}
		for i, answer := range answers {
			if !answer.New {
				fmt.Println(addresses[i], "was told before")
			}
		}
		return nil
	}
	_ = announce
}

// Once a day, beside the relays: what was sent a month ago goes, what failed stays for a person to see.
func ExampleTable_Purge() {
	clean := func(ctx context.Context, pool *pgxpool.Pool) error {
		deleted, err := outbox.Table{}.Purge(ctx, pool, time.Now().AddDate(0, -1, 0), outbox.Sent)
		fmt.Println("deleted", deleted) // also when it was cut short
		return err
	}
	_ = clean
}

func ExampleDecide() {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	reminder := outbox.Row{State: outbox.Pending, MaxAttempts: 5, ScheduledFor: now}
	fmt.Println(outbox.Decide(reminder, now.Add(-time.Second)))
	fmt.Println(outbox.Decide(reminder, now))

	claimed := outbox.Row{State: outbox.Processing, Attempts: 1, MaxAttempts: 5, LeaseUntil: now}
	fmt.Println(outbox.Decide(claimed, now.Add(-time.Second)))
	fmt.Println(outbox.Decide(claimed, now)) // whoever claimed it died
	// Output:
	// wait
	// send
	// wait
	// reclaim
}
