package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/sql"
)

// TenantType is the type of the tenant column.
type TenantType string

const (
	TenantUUID TenantType = "uuid"
	TenantText TenantType = "text"
)

// Table names an outbox table. Its zero value is the table outbox in the schema public with the tenant column
// organizacion_id of type uuid, as the TypeScript package makes it. It is comparable and safe for concurrent use.
type Table struct {
	// Schema of the table, 1 to 63 bytes. Empty means public. The search_path is never used.
	Schema string
	// Name of the table, 1 to 63 bytes. Empty means outbox.
	Name string
	// TenantColumn is the tenant column's name, 1 to 63 bytes. Empty means organizacion_id.
	TenantColumn string
	// TenantType is the tenant column's type. Empty means TenantUUID.
	TenantType TenantType
}

// WithDefaults is t with its defaults in place of empty names.
func (t Table) WithDefaults() Table {
	if t.Schema == "" {
		t.Schema = "public"
	}
	if t.Name == "" {
		t.Name = "outbox"
	}
	if t.TenantColumn == "" {
		t.TenantColumn = "organizacion_id"
	}
	if t.TenantType == "" {
		t.TenantType = TenantUUID
	}
	return t
}

// contractColumns are the columns of every outbox table besides the tenant's, with their types.
var contractColumns = map[string]string{
	"id": "uuid", "canal": "text", "destino": "text", "plantilla": "text", "datos": "jsonb", "clave_idempotencia": "text",
	"estado": "text", "intentos": "integer", "max_intentos": "integer", "programado_para": "timestamp with time zone",
	"proximo_intento_en": "timestamp with time zone", "bloqueado_hasta": "timestamp with time zone",
	"ultimo_error_categoria": "text", "ultimo_error_codigo": "text", "id_externo": "text",
	"enviado_en": "timestamp with time zone", "creado_en": "timestamp with time zone", "actualizado_en": "timestamp with time zone",
}

// Validate returns an error that wraps ErrInvalidOptions when a name cannot exist in Postgres.
func (t Table) Validate() error {
	t = t.WithDefaults()
	for _, f := range []struct{ field, value string }{
		{"Schema", t.Schema}, {"Name", t.Name}, {"TenantColumn", t.TenantColumn},
	} {
		if len(f.value) > 63 || strings.ContainsRune(f.value, 0) || !utf8.ValidString(f.value) {
			return invalidField("Table."+f.field, "must be a Postgres identifier of 1 to 63 bytes, got %q", f.value)
		}
	}
	if _, taken := contractColumns[t.TenantColumn]; taken || t.TenantColumn == "clave_orden" || t.TenantColumn == "cabeceras" {
		return invalidField("Table.TenantColumn", "must not be %q, which is another column of the outbox", t.TenantColumn)
	}
	if t.TenantType != TenantUUID && t.TenantType != TenantText {
		return invalidField("Table.TenantType", "must be uuid or text, got %q", t.TenantType)
	}
	return nil
}

// String is the quoted, schema-qualified name.
func (t Table) String() string {
	t = t.WithDefaults()
	return pgx.Identifier{t.Schema, t.Name}.Sanitize()
}

// Lock is a pair of keys of an advisory lock: a class and the table's hash.
type Lock struct{ Class, Key int32 }

func (l Lock) String() string { return fmt.Sprintf("%d, %d", l.Class, l.Key) }

// The advisory locks of an outbox. See docs/design.md for who takes which when.
const (
	watchClass int32 = 0x6f627857 // "obxW": held by the relay that watches; a writer that cannot share it stays silent
	crossClass int32 = 0x6f627858 // "obxX": shared by each writer that has decided, until its commit is visible
	roleClass  int32 = 0x6f627852 // "obxR": held by the one relay that may ask for the other two
	purgeClass int32 = 0x6f627850 // "obxP": held by the one relay that deletes old messages
)

// WatchLock, CrossLock and RoleLock are the advisory locks by which a busy relay silences the insert trigger.
func (t Table) WatchLock() Lock { return t.lock(watchClass) }

// CrossLock: see WatchLock.
func (t Table) CrossLock() Lock { return t.lock(crossClass) }

// RoleLock: see WatchLock.
func (t Table) RoleLock() Lock { return t.lock(roleClass) }

// PurgeLock is the advisory lock of whoever deletes old messages: see package retention.
func (t Table) PurgeLock() Lock { return t.lock(purgeClass) }

func (t Table) lock(class int32) Lock {
	sum := t.sum()
	return Lock{class, int32(binary.BigEndian.Uint32(sum[8:]))}
}

func (t Table) sum() [sha256.Size]byte {
	t = t.WithDefaults()
	return sha256.Sum256([]byte(t.Schema + "\x00" + t.Name))
}

// hash is the fixed-length part of every name that is derived from the table: Postgres cuts identifiers at 63 bytes, and
// two long table names must not meet after the cut.
func (t Table) hash() string {
	sum := t.sum()
	return hex.EncodeToString(sum[:8])
}

// Channel is the notification channel on which the insert trigger announces messages of this table.
func (t Table) Channel() string { return "outbox_" + t.hash() }

// due says when a row next needs attention. The index and every statement must write it alike.
const due = `(case estado when 'pendiente' then greatest(programado_para, proximo_intento_en) when 'procesando' then bloqueado_hasta end)`

// Names are the identifiers and expressions with which sql.Fill completes this outbox's statements.
func (t Table) Names() sql.Names {
	t = t.WithDefaults()
	in := func(name string) string { return pgx.Identifier{t.Schema, name}.Sanitize() }
	quote := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	names := sql.Names{
		"schema":        quote(t.Schema),
		"table":         t.String(),
		"tenant":        quote(t.TenantColumn),
		"tenant_type":   string(t.TenantType),
		"due":           due,
		"due_index":     quote(t.dueIndex()),
		"key_index":     quote("outbox_key_" + t.hash()),
		"function":      in("outbox_wake_" + t.hash()),
		"trigger":       quote(triggerName),
		"version_table": in("outbox_version_" + t.hash()),
		"failed_index":  quote(t.failedIndex()),
		"pause_table":   in(t.PauseTable()),
		"pause_key":     quote("outbox_pause_key_" + t.hash()),
		"channel":       "'" + t.Channel() + "'",
		"watch_lock":    t.WatchLock().String(),
		"cross_lock":    t.CrossLock().String(),
	}
	names["unpaused"] = sql.Fill(unpaused, names)
	return names
}

// triggerName begins with z: triggers of one table run in the order of their names, and this one should see what the
// others did.
const triggerName = "zz_outbox_wake"

func (t Table) dueIndex() string    { return "outbox_due_" + t.hash() }
func (t Table) failedIndex() string { return "outbox_failed_" + t.hash() }

// PauseTable is the name, in the schema of the outbox, of the table of its pauses.
func (t Table) PauseTable() string { return "outbox_pause_" + t.hash() }

// SchemaName is the schema, public by default.
func (t Table) SchemaName() string { return t.WithDefaults().Schema }
