package outbox_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// stored is what a message became, without what differs from one enqueueing to the next.
const stored = `select string_agg(concat_ws('|', clave_idempotencia, organizacion_id, canal, destino, plantilla, md5(datos::text), max_intentos,
	case when programado_para = now() then 'now' else programado_para::text end, coalesce(clave_orden, '-'), coalesce(cabeceras::text, '-')),
	e'\n' order by clave_idempotencia collate "C") from outbox`

// varied are messages whose fields are easily lost in one of the ways to send them, each with the datos that it must give.
func varied() (ms []outbox.Message, datos []string) {
	add := func(key string, data any, want string, change func(*outbox.Message)) {
		m := message(key)
		m.Data = data
		if change != nil {
			change(&m)
		}
		ms, datos = append(ms, m), append(datos, want)
	}
	type turno struct {
		Nombre string  `json:"nombre"`
		Hora   *string `json:"hora"`
		Precio float64 `json:"precio"`
	}
	emoji := strings.Repeat("😀", 5000)
	large := strings.Repeat("0123456789abcdef", 5<<20/16)
	add("nil", nil, `{}`, nil)
	add("typed nil", map[string]any(nil), `null`, nil)
	add("map", map[string]any{"b": 1, "a": []any{true, nil, "x"}}, `{"a": [true, null, "x"], "b": 1}`, nil)
	add("struct", turno{Nombre: `Ana "Ñ" \ O'Hara <b>&`, Precio: 1e21}, `{"nombre": "Ana \"Ñ\" \\ O'Hara <b>&", "hora": null, "precio": 1000000000000000000000}`, nil)
	add("raw", json.RawMessage(`{"n": 12345678901234567890.10, "n": 2.50, "s": "\u00e9\ud83d\ude00\\u0000"}`), `{"n": 2.50, "s": "é😀\\u0000"}`, nil)
	add("bytes", []byte(`{"a":1}`), `"eyJhIjoxfQ=="`, nil) // base64, as json.Marshal says
	add("string", "$1 ' ; -- \\", `"$1 ' ; -- \\"`, nil)
	add("5 MB", map[string]string{"s": large}, `{"s": "`+large+`"}`, nil)
	add(strings.Repeat("😀", 200), map[string]string{emoji: emoji}, `{"`+emoji+`": "`+emoji+`"}`, func(m *outbox.Message) {
		m.Destination, m.Template, m.OrderingKey = emoji, emoji, strings.Repeat("😀", 200)
		m.Headers = map[string]string{"😀": emoji}
	})
	add(`{"'\x,NULL}`, nil, `{}`, func(m *outbox.Message) { // an array's own punctuation
		m.Channel, m.Destination, m.Template, m.OrderingKey = `{"`, `NULL`, `a,"b"\'`, "\t{}\n"
		m.Headers = map[string]string{`"`: `\`}
	})
	for key, at := range map[string]time.Time{
		"west of year 1": time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC).In(time.FixedZone("", -11*3600)),
		"east of 9999":   time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).In(time.FixedZone("", 14*3600)),
		"nanoseconds":    time.Date(2026, 11, 30, 9, 0, 0, 999_999_999, time.FixedZone("", -3*3600)),
		"before 1970":    time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	} {
		add(key, nil, `{}`, func(m *outbox.Message) { m.ScheduledFor, m.MaxAttempts = at, 1 })
	}
	return ms, datos
}

func TestEveryWayToEnqueueStoresTheSameBytes(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	ms, datos := varied()

	tx := begin(t, pool)
	for _, m := range ms {
		if _, err := (outbox.Table{}).Enqueue(t.Context(), tx, m); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range datos {
		const same = "select datos::text = ($2::text::jsonb)::text from outbox where clave_idempotencia = $1"
		if !value[bool](t, tx, same, ms[i].IdempotencyKey, want) {
			t.Errorf("%.40s: datos is not %.80s", ms[i].IdempotencyKey, want)
		}
	}
	want := value[string](t, tx, stored)
	for _, line := range []string{"|0001-01-01 00:00:01", "|9999-12-31 23:59:59", "|2026-11-30 12:00:00.999999", "|1969-12-31 23:59:59.999999", "|5|now|-|-"} {
		if !strings.Contains(want, line) {
			t.Errorf("no row has %q", line)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, way := range slices.Concat(drivers[1:], modes) {
		t.Run(way.name, func(t *testing.T) {
			tx := way.begin(t, pool, outbox.Table{})
			for _, m := range ms {
				if _, err := tx.enqueue(m); err != nil {
					t.Fatalf("%.40s: %v", m.IdempotencyKey, err)
				}
			}
			got, err := tx.text(stored)
			if err != nil {
				t.Fatal(err)
			}
			sameRows(t, got, want)
			if err := tx.rollback(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run("many, "+mode.String(), func(t *testing.T) {
			tx := beginPgx(t, pool, mode)
			if _, err := (outbox.Table{}).EnqueueMany(t.Context(), tx, ms); err != nil {
				t.Fatal(err)
			}
			sameRows(t, value[string](t, tx, stored), want)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// sameRows names the first line that differs, not the megabytes around it.
func sameRows(t *testing.T, got, want string) {
	t.Helper()
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Errorf("got %.300q, want %.300q", gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Errorf("got %d lines, want %d", len(gotLines), len(wantLines))
	}
}
