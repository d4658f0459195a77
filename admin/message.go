package admin

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Message is a row of the outbox. Destination, and the Data and Headers that only Show gives, are about people: keep them out
// of logs. A time that is not set is nil.
type Message struct {
	ID           string          `json:"id"`
	TenantID     string          `json:"tenant"`
	Channel      string          `json:"channel"`
	Destination  string          `json:"destination"`
	Template     string          `json:"template"`
	Key          string          `json:"key"`
	State        outbox.State    `json:"state"`
	Attempts     int             `json:"attempts"`
	MaxAttempts  int             `json:"max_attempts"`
	ScheduledFor *time.Time      `json:"scheduled_for,omitempty"`
	NextAttempt  *time.Time      `json:"next_attempt,omitempty"`
	LeaseUntil   *time.Time      `json:"lease_until,omitempty"`
	Leased       bool            `json:"leased"` // under a lease that is still valid
	Category     string          `json:"category,omitempty"`
	Code         string          `json:"code,omitempty"`
	ExternalID   string          `json:"external_id,omitempty"`
	Sent         *time.Time      `json:"sent,omitempty"`
	Created      *time.Time      `json:"created,omitempty"`
	Changed      *time.Time      `json:"changed,omitempty"`
	Data         json.RawMessage `json:"data,omitempty"`
	OrderingKey  string          `json:"ordering_key,omitempty"`
	Headers      json.RawMessage `json:"headers,omitempty"`
}

// plainSQL are the columns that a list reads, messageSQL what scan wants of them. An infinite time is none in Go.
const (
	plainSQL = `o.id, o.{{tenant}}, o.canal, o.destino, o.plantilla, o.clave_idempotencia, o.estado, o.intentos, o.max_intentos,
	o.programado_para, o.proximo_intento_en, o.bloqueado_hasta, o.ultimo_error_categoria, o.ultimo_error_codigo, o.id_externo,
	o.enviado_en, o.creado_en, o.actualizado_en`
	messageSQL = `o.id::text, o.{{tenant}}::text, o.canal, o.destino, o.plantilla, o.clave_idempotencia, o.estado, o.intentos, o.max_intentos,
	case when isfinite(o.programado_para) then o.programado_para end, case when isfinite(o.proximo_intento_en) then o.proximo_intento_en end,
	case when isfinite(o.bloqueado_hasta) then o.bloqueado_hasta end,
	o.estado = 'procesando' and coalesce(o.bloqueado_hasta > now(), true),
	coalesce(o.ultimo_error_categoria, ''), coalesce(o.ultimo_error_codigo, ''), coalesce(o.id_externo, ''),
	o.enviado_en, o.creado_en, o.actualizado_en`
)

func scan(row pgx.CollectableRow, m *Message, more ...any) error {
	into := []any{&m.ID, &m.TenantID, &m.Channel, &m.Destination, &m.Template, &m.Key, &m.State, &m.Attempts, &m.MaxAttempts,
		&m.ScheduledFor, &m.NextAttempt, &m.LeaseUntil, &m.Leased, &m.Category, &m.Code, &m.ExternalID, &m.Sent, &m.Created, &m.Changed}
	return row.Scan(append(into, more...)...)
}
