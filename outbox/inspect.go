package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed inspect.sql
var inspectSQL string

// Inspection is what the database has of an outbox.
type Inspection struct {
	Table       Table
	Exists      bool
	Columns     map[string]string // name and type, as format_type writes it
	KeyIndex    bool              // a unique index on tenant and key
	DueIndex    *bool             // nil: missing; false: left invalid by an interrupted build
	FailedIndex *bool             // as DueIndex; for people's work only
	Pauses      bool              // there is a table for the pauses
	Trigger     TriggerState
	Settings    bool // the table has storage settings
	Partitioned bool // which an outbox may not be
}

// TriggerState says whether inserts wake the relays.
type TriggerState string

const (
	TriggerOn       TriggerState = "on"
	TriggerMissing  TriggerState = "missing"
	TriggerDisabled TriggerState = "disabled"
	// TriggerElsewhere: it announces on another channel, as after a rename of the table or its schema.
	TriggerElsewhere TriggerState = "announces on another channel"
)

// Inspect reads the catalog.
func (t Table) Inspect(ctx context.Context, db DB) (Inspection, error) {
	if err := t.Validate(); err != nil {
		return Inspection{}, err
	}
	t = t.WithDefaults()
	in := Inspection{Table: t, Trigger: TriggerMissing}
	var enabled, source *string
	err := db.QueryRow(ctx, inspectSQL, t.Schema, t.Name, t.dueIndex(), triggerName, t.TenantColumn, t.failedIndex(), t.PauseTable()).
		Scan(&in.Columns, &in.DueIndex, &in.KeyIndex, &enabled, &source, &in.Settings, &in.Partitioned, &in.FailedIndex, &in.Pauses)
	if errors.Is(err, pgx.ErrNoRows) {
		return in, nil
	}
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect %s: %w", t, err)
	}
	in.Exists = true
	switch {
	case enabled == nil:
	case *enabled == "D" || *enabled == "R":
		in.Trigger = TriggerDisabled
	case !strings.Contains(*source, t.Channel()):
		in.Trigger = TriggerElsewhere
	default:
		in.Trigger = TriggerOn
	}
	return in, nil
}

// Optional tells whether the table has the columns for ordering keys and headers.
func (in Inspection) Optional() bool {
	return in.Columns["clave_orden"] != "" && in.Columns["cabeceras"] != ""
}

// ColumnsFit returns an error that wraps ErrSchema and names the columns that are missing or of another type.
func (in Inspection) ColumnsFit() error {
	var wrong []string
	check := func(name, want string) {
		got, there := in.Columns[name]
		switch {
		case !there:
			wrong = append(wrong, name+" is missing")
		case got != want && !(want == "text" && strings.HasPrefix(got, "character varying")):
			wrong = append(wrong, fmt.Sprintf("%s is %s instead of %s", name, got, want))
		}
	}
	for name, want := range contractColumns {
		check(name, want)
	}
	check(in.Table.TenantColumn, string(in.Table.TenantType))
	if in.Partitioned {
		wrong = append(wrong, "a partitioned table cannot be an outbox")
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%w: %s: %s: set Table.TenantColumn and Table.TenantType, or alter the table", ErrSchema, in.Table, strings.Join(wrong, ", "))
}

// Fit returns an error that wraps ErrSchema, and says what to do, when a relay cannot work on the table.
func (in Inspection) Fit() error {
	if !in.Exists {
		return fmt.Errorf("%w: there is no table %s: run relay migrate", ErrSchema, in.Table)
	}
	if err := in.ColumnsFit(); err != nil {
		return err
	}
	if in.DueIndex == nil || !*in.DueIndex {
		return fmt.Errorf("%w: %s has no valid index %s: run relay migrate", ErrSchema, in.Table, in.Table.dueIndex())
	}
	return nil
}

// Operable returns an error that wraps ErrSchema, and says what to do, when the table is older than package admin needs.
func (in Inspection) Operable() error {
	if err := in.Fit(); err != nil {
		return err
	}
	if in.FailedIndex == nil || !*in.FailedIndex || !in.Pauses {
		return fmt.Errorf("%w: %s is of an older version, without the index of what failed or the table of pauses: run relay migrate", ErrSchema, in.Table)
	}
	return nil
}
