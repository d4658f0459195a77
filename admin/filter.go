package admin

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// MaxIDs bounds Filter.IDs.
const MaxIDs = 10_000

// Filter says which messages are meant: those that fit every field that is set. The zero value means all.
type Filter struct {
	IDs      []string // at most MaxIDs
	Key      string   // idempotency key; needs TenantID
	TenantID string
	States   []outbox.State
	Channel  string
	Category string // of the last failure
	Code     string
	// Since and Until bound the time of the last change: from Since to before Until, by the server's clock.
	Since, Until time.Time
}

// Validate returns an error that wraps outbox.ErrInvalidOptions when no message could fit.
func (f Filter) Validate(t outbox.Table) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if len(f.IDs) > MaxIDs {
		return invalid("at most %d ids at a time, got %d", MaxIDs, len(f.IDs))
	}
	for _, id := range f.IDs {
		if err := checkUUID("an id", id); err != nil {
			return err
		}
	}
	for _, s := range f.States {
		if !slices.Contains(States(), s) {
			return invalid("unknown state %q: use %s", s, joined(States()))
		}
	}
	if f.Key != "" && f.TenantID == "" {
		return invalid("a key needs its tenant: two tenants may use the same one")
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return invalid("nothing lies from %s to before %s: give an earlier since or a later until",
			f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	return checkTenant(t, f.TenantID)
}

// States are all states, in the order of a message's life.
func States() []outbox.State {
	return []outbox.State{outbox.Pending, outbox.Processing, outbox.Sent, outbox.Discarded, outbox.Failed}
}

func joined(states []outbox.State) string {
	texts := make([]string, len(states))
	for i, s := range states {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// within tells whether the filter is about some of these states only.
func (f Filter) within(states ...outbox.State) bool {
	return len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s outbox.State) bool { return !slices.Contains(states, s) })
}

// where is a condition in the making, with its arguments. Columns are those of o.
type where struct {
	conditions []string
	args       []any
}

// add appends a condition in which each ? stands for the next argument.
func (w *where) add(condition string, args ...any) {
	for _, arg := range args {
		w.args = append(w.args, arg)
		condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	w.conditions = append(w.conditions, condition)
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return "true"
	}
	return strings.Join(w.conditions, " and ")
}

// on adds what the filter asks for, whichever way the rows are found.
func (f Filter) on(w *where) {
	if len(f.IDs) > 0 {
		w.add("o.id = any(?::text[]::uuid[])", f.IDs)
	}
	if len(f.States) > 0 {
		w.add("o.estado = any(?::text[])", f.States)
	}
	for _, c := range []struct{ condition, value string }{
		{"o.clave_idempotencia = ?::text", f.Key}, {"o.{{tenant}} = ?::text::{{tenant_type}}", f.TenantID},
		{"o.canal = ?::text", f.Channel}, {"o.ultimo_error_categoria = ?::text", f.Category}, {"o.ultimo_error_codigo = ?::text", f.Code},
	} {
		if c.value != "" {
			w.add(c.condition, c.value)
		}
	}
	if !f.Since.IsZero() {
		w.add("o.actualizado_en >= ?::timestamptz", f.Since)
	}
	if !f.Until.IsZero() {
		w.add("o.actualizado_en < ?::timestamptz", f.Until)
	}
}
