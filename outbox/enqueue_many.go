package outbox

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed enqueue_many.sql
var enqueueManySQL string

// EnqueueMany is Enqueue for many messages in one round trip. The answers stand in the order of ms. Of messages with the
// same tenant and key the first is new and the others get its id, unless the table had the key already. An invalid
// message is named by its position, and then nothing was sent to the database.
func (t Table) EnqueueMany(ctx context.Context, tx pgx.Tx, ms []Message) ([]Enqueued, error) {
	if tx == nil {
		return nil, fmt.Errorf("enqueue: %w", ErrTransactionRequired)
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if len(ms) == 0 {
		return nil, nil
	}
	var in columns
	for i, m := range ms {
		r, err := m.row(t)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		in.add(r)
	}
	answers, err := t.enqueueColumns(ctx, tx, &in)
	if err != nil {
		return nil, t.enqueueError(err)
	}
	for i := range answers {
		if answers[i].ID != "" {
			continue
		}
		// The key was committed while the insert waited for it: only a new statement can see that row.
		if answers[i], err = t.Enqueue(ctx, tx, ms[i]); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (t Table) enqueueColumns(ctx context.Context, tx pgx.Tx, in *columns) ([]Enqueued, error) {
	names := t.Names()
	args := []any{in.ids, in.tenants, in.channels, in.destinations, in.templates, in.data, in.keys, in.maxAttempts, in.scheduledFor}
	names["optional"], names["optional_input"], names["optional_arrays"] = "", "", ""
	if in.optional {
		names["optional"] = ", clave_orden, cabeceras"
		names["optional_input"] = ", u.clave_orden, u.cabeceras::jsonb as cabeceras"
		names["optional_arrays"] = ", $10::text[], $11::text[]"
		args = append(args, in.orderingKeys, in.headers)
	}
	rows, err := tx.Query(ctx, sql.Fill(enqueueManySQL, names), args...)
	if err != nil {
		return nil, err
	}
	answers := make([]Enqueued, len(in.ids))
	var n int64
	var id *string
	var isNew *bool
	_, err = pgx.ForEachRow(rows, []any{&n, &id, &isNew}, func() error {
		if id != nil {
			answers[n-1] = Enqueued{ID: *id, New: isNew != nil && *isNew}
		}
		return nil
	})
	return answers, err
}

// columns are rows turned by ninety degrees: one array for each parameter.
type columns struct {
	ids, tenants, channels, destinations, templates, data, keys []string
	maxAttempts                                                 []*int32
	scheduledFor                                                []*time.Time
	orderingKeys, headers                                       []*string
	optional                                                    bool
}

func (c *columns) add(r row) {
	c.ids = append(c.ids, r.id)
	c.tenants = append(c.tenants, r.tenant)
	c.channels = append(c.channels, r.channel)
	c.destinations = append(c.destinations, r.destination)
	c.templates = append(c.templates, r.template)
	c.data = append(c.data, r.data)
	c.keys = append(c.keys, r.key)
	c.maxAttempts = append(c.maxAttempts, r.maxAttempts)
	c.scheduledFor = append(c.scheduledFor, r.scheduledFor)
	c.orderingKeys = append(c.orderingKeys, r.orderingKey)
	c.headers = append(c.headers, r.headers)
	c.optional = c.optional || r.orderingKey != nil || r.headers != nil
}
