package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// Show gives one message with its data and headers. ErrNotFound says that there is none.
func Show(ctx context.Context, db DB, t outbox.Table, id string) (m Message, err error) {
	if err := (Filter{IDs: []string{id}}).Validate(t); err != nil {
		return Message{}, err
	}
	in, err := t.Inspect(ctx, db)
	if err != nil {
		return Message{}, err
	}
	if err := in.Operable(); err != nil {
		return Message{}, err
	}
	optional := "'', null"
	if in.Optional() {
		optional = "coalesce(o.clave_orden, ''), o.cabeceras::text"
	}
	statement := "select " + messageSQL + ", o.datos::text, " + optional + " from {{table}} o where o.id = $1::text::uuid"
	var data, headers []byte
	err = read(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql.Fill(statement, t.Names()), id)
		if err != nil {
			return err
		}
		m, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (m Message, err error) {
			return m, scan(row, &m, &data, &m.OrderingKey, &headers)
		})
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Message{}, fmt.Errorf("%w with the id %s", ErrNotFound, id)
	}
	if err != nil {
		return Message{}, failed("show", err)
	}
	m.Data, m.Headers = data, headers
	return m, nil
}
