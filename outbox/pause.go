package outbox

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed pauses.sql
var pausesSQL string

// Pause keeps relays from taking messages. Enqueueing goes on.
type Pause struct {
	Channel  string    `json:"channel,omitempty"` // empty: of all channels
	TenantID string    `json:"tenant,omitempty"`  // empty: of all tenants
	Since    time.Time `json:"since"`
}

// Covers tells whether a message of this channel and tenant is paused.
func (p Pause) Covers(channel, tenantID string) bool {
	return (p.Channel == "" || p.Channel == channel) && (p.TenantID == "" || p.TenantID == tenantID)
}

// PausesChanged is what package admin sends on the table's channel when it has changed the pauses.
const PausesChanged = "pauses"

// unpaused is the condition on the row o that no pause covers it.
const unpaused = `not exists (select from {{pause_table}} p
      where (p.canal is null or p.canal = o.canal) and (p.{{tenant}} is null or p.{{tenant}} = o.{{tenant}}))`

// Pauses reads the pauses, the oldest first. A table of an older version has none. The error wraps ErrSchema when the
// role may not read them.
func (t Table) Pauses(ctx context.Context, db DB) ([]Pause, error) {
	names := t.Names()
	var there bool
	const ask = "select to_regclass($1::text) is not null" // a failed look would stand in the server's log
	if err := db.QueryRow(ctx, ask, names["pause_table"]).Scan(&there); err != nil || !there {
		return nil, wrap("look for the pauses", err)
	}
	var channels, tenants []string
	var since []time.Time
	err := db.QueryRow(ctx, sql.Fill(pausesSQL, names)).Scan(&channels, &tenants, &since)
	if SQLState(err) == "42501" {
		return nil, fmt.Errorf("%w: the pauses cannot be read: grant select on %s to this role", ErrSchema, names["pause_table"])
	}
	if err != nil {
		return nil, wrap("read the pauses", err)
	}
	pauses := make([]Pause, len(channels))
	for i := range channels {
		pauses[i] = Pause{channels[i], tenants[i], since[i]}
	}
	return pauses, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
