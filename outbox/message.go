package outbox

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Message is what an application enqueues.
type Message struct {
	// TenantID is whose message it is: a UUID where the tenant column is one, otherwise a text of 1 to 200 characters.
	TenantID string
	// Channel decides which sender takes it: correo, whatsapp, webhook, ..., or a name of the application's own. Required.
	Channel string
	// Destination is an address, number, URL, topic or queue. Required.
	Destination string
	// Template is the template's name, or the type of an event. Required.
	Template string
	// Data is the template's data or the event's payload: anything that encoding/json can marshal and jsonb can hold.
	// Nil means an empty object. At most 40 MB of JSON, nested at most 5000 deep, without NUL.
	Data any
	// IdempotencyKey names the message within its tenant, 1 to 200 characters: enqueueing it again changes nothing.
	IdempotencyKey string
	// ScheduledFor is the time before which it is not sent. Zero means the database's now(); years 1 to 9999.
	ScheduledFor time.Time
	// MaxAttempts is how often sending is tried. Zero means 5; negative is invalid.
	MaxAttempts int
	// OrderingKey and Headers need the optional columns, which relay migrate adds. Empty ones need nothing.
	OrderingKey string
	// Headers travel with the message, traceparent for example.
	Headers map[string]string
}

// maxKey is the greatest length of an idempotency key and of a textual tenant, in characters.
const maxKey = 200

// row is a validated message in the form in which the statements take it. The fields are texts because a text means the
// same in each of pgx's query modes and in database/sql.
type row struct {
	id, tenant, channel, destination, template, data, key string
	maxAttempts                                           *int32
	scheduledFor                                          *time.Time
	orderingKey, headers                                  *string
}

// row checks m before the database is asked.
func (m Message) row(t Table) (row, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return row{}, fmt.Errorf("make a message id: %w", err)
	}
	r := row{id: id.String(), tenant: m.TenantID, channel: m.Channel, destination: m.Destination, template: m.Template, key: m.IdempotencyKey}
	if err := m.validate(t); err != nil {
		return row{}, err
	}
	if r.data, err = encodeData(m.Data); err != nil {
		return row{}, err
	}
	if m.MaxAttempts != 0 {
		n := int32(m.MaxAttempts)
		r.maxAttempts = &n
	}
	if !m.ScheduledFor.IsZero() {
		// A driver that sends it as text has Postgres round it up, others cut it off.
		at := m.ScheduledFor.Truncate(time.Microsecond)
		r.scheduledFor = &at
	}
	if m.OrderingKey != "" {
		r.orderingKey = &m.OrderingKey
	}
	if len(m.Headers) > 0 {
		b, err := json.Marshal(m.Headers)
		if err != nil {
			return row{}, invalid("Headers", "must be valid text")
		}
		s := string(b)
		r.headers = &s
	}
	return r, nil
}

// Check says why Enqueue would refuse m, without a database.
func (t Table) Check(m Message) error {
	if err := t.Validate(); err != nil {
		return err
	}
	_, err := m.row(t)
	return err
}

func (m Message) validate(t Table) error {
	if t.WithDefaults().TenantType == TenantUUID {
		// Only the form with hyphens: uuid.Parse also takes URNs and braces, which would be stored as something else.
		if _, err := uuid.Parse(m.TenantID); err != nil || len(m.TenantID) != 36 {
			return invalid("TenantID", "must be a UUID of 36 characters, since the tenant column is one")
		}
	} else if err := checkText("TenantID", m.TenantID, maxKey); err != nil {
		return err
	}
	for _, f := range []struct {
		field, value string
		max          int
	}{
		{"Channel", m.Channel, math.MaxInt},
		{"Destination", m.Destination, math.MaxInt},
		{"Template", m.Template, math.MaxInt},
		{"IdempotencyKey", m.IdempotencyKey, maxKey},
	} {
		if err := checkText(f.field, f.value, f.max); err != nil {
			return err
		}
	}
	if m.MaxAttempts < 0 || m.MaxAttempts > math.MaxInt32 {
		return invalid("MaxAttempts", fmt.Sprintf("must be 1 to %d, or 0 for the default of 5", math.MaxInt32))
	}
	if !m.ScheduledFor.IsZero() && (m.ScheduledFor.UTC().Year() < 1 || m.ScheduledFor.UTC().Year() > 9999) {
		return invalid("ScheduledFor", "must lie in the years 1 to 9999")
	}
	if m.OrderingKey != "" {
		if err := checkText("OrderingKey", m.OrderingKey, maxKey); err != nil {
			return err
		}
	}
	for name, value := range m.Headers {
		if checkText("Headers", name, maxKey) != nil || !storable(value) {
			return invalid("Headers", fmt.Sprintf("must have names of 1 to %d characters, and be valid UTF-8 without NUL", maxKey))
		}
	}
	return nil
}

func checkText(field, value string, max int) error {
	switch {
	case strings.TrimSpace(value) == "":
		return invalid(field, "must not be empty")
	case !storable(value):
		return invalid(field, "must be valid UTF-8 without NUL, which Postgres cannot store")
	case utf8.RuneCountInString(value) > max:
		return invalid(field, fmt.Sprintf("must be 1 to %d characters, got %d", max, utf8.RuneCountInString(value)))
	}
	return nil
}

func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func invalid(field, bound string) error {
	return &OptionError{"Message." + field, bound}
}
