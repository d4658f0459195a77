package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

const (
	createTurnos = `create table if not exists turnos (
		organizacion_id uuid not null, id text not null, nombre text not null, inicio timestamptz not null,
		primary key (organizacion_id, id))`
	insertTurno = `insert into turnos (organizacion_id, id, nombre, inicio)
		values ($1::uuid, $2::text, $3::text, $4::timestamptz) on conflict do nothing`
)

// Booking is an appointment with one of the organizations that use this service.
type Booking struct {
	Tenant, ID         string // together they name it
	Name, Phone, Email string
	Starts             time.Time
	Template           string    // of the confirmation, as the organization chose it
	Reminder           string    // the channel of the reminder: whatsapp or correo
	RemindAt           time.Time // when it leaves
}

// Book makes an appointment and enqueues its confirmation and its reminder in the same transaction: all three happen, or
// none. Booking again changes nothing and enqueues nothing, since the keys are the same; created is false then.
func Book(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, b Booking) (created bool, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertTurno, b.Tenant, b.ID, b.Name, b.Starts); err != nil {
			return err
		}
		enqueued, err := table.Enqueue(ctx, tx, b.confirmation())
		if err != nil {
			return err
		}
		created = enqueued.New
		_, err = table.Enqueue(ctx, tx, b.reminder())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("book %s: %w", b.ID, err)
	}
	return created, nil
}

// details are the data of every template.
type details struct {
	Name   string `json:"nombre"`
	Starts string `json:"inicio"`
}

func (b Booking) details() details { return details{b.Name, b.Starts.Format("02/01 15:04")} }

// confirmation leaves as soon as the transaction commits.
func (b Booking) confirmation() outbox.Message {
	return outbox.Message{
		TenantID:       b.Tenant,
		Channel:        "whatsapp",
		Destination:    b.Phone,
		Template:       b.Template,
		Data:           b.details(),
		IdempotencyKey: "confirmacion/" + b.ID,
	}
}

// reminder leaves at its time.
func (b Booking) reminder() outbox.Message {
	m := outbox.Message{
		TenantID:       b.Tenant,
		Channel:        b.Reminder,
		Destination:    b.Phone,
		Template:       "turno_recordatorio",
		Data:           b.details(),
		IdempotencyKey: "recordatorio/" + b.ID,
		ScheduledFor:   b.RemindAt,
	}
	if m.Channel == "correo" {
		m.Destination = b.Email
	}
	return m
}
