package outbox_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestEnqueueFollowsItsTransaction(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, way := range drivers {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			tx := way.begin(t, pool, outbox.Table{})
			add := func(key string) {
				t.Helper()
				if got, err := tx.enqueue(message(way.name + key)); err != nil || !got.New || len(got.ID) != 36 {
					t.Errorf("%s: got %+v, %v, want a new message with a UUID", key, got, err)
				}
			}
			keys := func() []string {
				return value[[]string](t, pool, `select coalesce(array_agg(right(clave_idempotencia, 1) order by clave_idempotencia), '{}')
					from outbox where starts_with(clave_idempotencia, $1)`, way.name)
			}
			add("a")
			tx.must(t, "savepoint s")
			add("b")
			tx.must(t, "rollback to savepoint s")
			tx.must(t, "savepoint s")
			add("c")
			tx.must(t, "release savepoint s")
			if got := keys(); len(got) != 0 {
				t.Errorf("before the commit: got %q, want nothing", got)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
			tx = way.begin(t, pool, outbox.Table{})
			add("d")
			if err := tx.rollback(); err != nil {
				t.Fatal(err)
			}
			if got := keys(); !slices.Equal(got, []string{"a", "c"}) {
				t.Errorf("got %q, want a and c: b's savepoint and d's transaction were rolled back", got)
			}
		})
	}
}

func TestEnqueueFollowsANestedTransactionOfPgx(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	tx := begin(t, pool)
	for _, key := range []string{"kept", "dropped"} {
		inner, err := tx.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (outbox.Table{}).Enqueue(t.Context(), inner, message(key)); err != nil {
			t.Fatal(err)
		}
		end := inner.Commit
		if key == "dropped" {
			end = inner.Rollback
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := value[string](t, pool, "select string_agg(clave_idempotencia, ' ') from outbox"); got != "kept" {
		t.Errorf("got %q, want only the one whose savepoint was released", got)
	}
}

func TestEnqueueRefusesATransactionThatHasEndedOrFailed(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, way := range slices.Concat(drivers, modes) {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			committed, rolledBack, failed := way.begin(t, pool, outbox.Table{}), way.begin(t, pool, outbox.Table{}), way.begin(t, pool, outbox.Table{})
			if err := committed.commit(); err != nil {
				t.Fatal(err)
			}
			if err := rolledBack.rollback(); err != nil {
				t.Fatal(err)
			}
			if err := failed.exec("select 1 / 0"); err == nil {
				t.Fatal("the statement should have failed")
			}
			for name, tx := range map[string]transaction{"committed": committed, "rolled back": rolledBack, "failed": failed} {
				t.Log(name)
				_, err := tx.enqueue(message("k"))
				refused(t, err, outbox.ErrTransactionRequired)
			}
		})
	}
	if got := value[int](t, pool, "select count(*) from outbox"); got != 0 {
		t.Errorf("got %d rows, want none", got)
	}
}

func TestEnqueueRefusesANilTransaction(t *testing.T) {
	t.Parallel()
	var table outbox.Table
	_, err := table.Enqueue(t.Context(), nil, message("k"))
	refused(t, err, outbox.ErrTransactionRequired)
	_, err = table.EnqueueSQL(t.Context(), (*sql.Tx)(nil), message("k"))
	refused(t, err, outbox.ErrTransactionRequired)
	_, err = table.EnqueueMany(t.Context(), nil, []outbox.Message{message("k")})
	refused(t, err, outbox.ErrTransactionRequired)
}

// The business's clock may be wrong by hours: what it does not set is the database's, and what it sets is kept as it is.
func TestEnqueueTakesTheTimeFromTheDatabaseUnlessTheMessageSaysOne(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	tx := begin(t, pool)
	for key, at := range map[string]time.Time{
		"none": {}, "an hour ago": time.Now().Add(-time.Hour), "in an hour": time.Now().Add(time.Hour),
		"first second of year 1, in the west": time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC).In(time.FixedZone("", -11*3600)),
		"last second of year 9999, in the east": time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).
			In(time.FixedZone("", 14*3600)),
		"finer than a microsecond": time.Date(2026, 11, 30, 9, 0, 0, 999_999_999, time.UTC),
	} {
		m := message(key)
		m.ScheduledFor = at
		if _, err := (outbox.Table{}).Enqueue(t.Context(), tx, m); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		want := at.Truncate(time.Microsecond)
		if key == "none" {
			want = value[time.Time](t, tx, "select now()")
		}
		got := value[time.Time](t, tx, "select programado_para from outbox where clave_idempotencia = $1", key)
		if !got.Equal(want) {
			t.Errorf("%s: got %v, want %v", key, got.UTC(), want.UTC())
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	ownTimes := value[bool](t, pool, "select bool_and(creado_en between now() - interval '1 minute' and now() and actualizado_en = creado_en) from outbox")
	if !ownTimes {
		t.Error("creado_en and actualizado_en are not the database's time of the transaction")
	}
}

func TestEnqueueFillsTheColumnsOfANewMessage(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	m := message("turno-1")
	m.MaxAttempts = 3
	mustEnqueue(t, pool, outbox.Table{}, message("defaults"), m)
	const columns = `select concat_ws('|', organizacion_id, canal, destino, plantilla, datos, estado, intentos, max_intentos, proximo_intento_en,
		bloqueado_hasta, ultimo_error_categoria, ultimo_error_codigo, id_externo, enviado_en, clave_orden, cabeceras)
		from outbox where clave_idempotencia = $1`
	for key, want := range map[string]string{
		"defaults": tenant + "|correo|ana@example.com|turno.confirmado|{}|pendiente|0|5",
		"turno-1":  tenant + "|correo|ana@example.com|turno.confirmado|{}|pendiente|0|3",
	} {
		if got := value[string](t, pool, columns, key); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
}

func TestEnqueueSaysWhatTheTableLacks(t *testing.T) {
	t.Parallel()
	textTenant := outbox.Table{TenantType: outbox.TenantText}
	tests := []struct {
		name, damage string
		table        outbox.Table
	}{
		{"no table", "drop table outbox", outbox.Table{}},
		{"no schema", "select 1", outbox.Table{Schema: "elsewhere"}},
		{"no column", "alter table outbox drop column plantilla", outbox.Table{}},
		{"no unique index", "drop index {{key}}", outbox.Table{}},
		{"a partial unique index", "drop index {{key}}; create unique index on outbox (organizacion_id, clave_idempotencia) where estado = 'pendiente'",
			outbox.Table{}},
		{"no optional columns", "alter table outbox drop column clave_orden, drop column cabeceras", outbox.Table{}},
		{"another tenant column", "alter table outbox rename column organizacion_id to empresa_id", outbox.Table{}},
		{"a textual tenant", "alter table outbox alter column organizacion_id type text", outbox.Table{}},
		{"a tenant that is a UUID", "select 1", textTenant},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool := built(t, outbox.Table{})
			exec(t, pool, fillKeyIndex(t, pool, test.damage))
			m := message("k")
			m.OrderingKey, m.Headers = "turno-1", map[string]string{"traceparent": "00"}
			for _, way := range drivers {
				tx := way.begin(t, pool, test.table)
				_, err := tx.enqueue(m)
				if err == nil {
					_, err = tx.enqueue(m) // a UUID can be written to a textual column, but not compared with it
				}
				refused(t, err, outbox.ErrSchema, "relay migrate", test.table.String())
				_ = tx.rollback()
			}
			_, err := test.table.EnqueueMany(t.Context(), begin(t, pool), []outbox.Message{m})
			refused(t, err, outbox.ErrSchema, "relay migrate", test.table.String())
		})
	}
}

func TestEnqueueNeedsTheOptionalColumnsOnlyForWhatTheyHold(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	m := message("with")
	m.OrderingKey, m.Headers = "turno-1", map[string]string{"traceparent": "00-ñ-😀", "vacío": ""}
	mustEnqueue(t, pool, outbox.Table{}, m, message("without"))
	got := value[string](t, pool, `select string_agg(concat_ws('|', clave_idempotencia, coalesce(clave_orden, '-'), coalesce(cabeceras::text, '-')), '; '
		order by clave_idempotencia) from outbox`)
	if want := `with|turno-1|{"vacío": "", "traceparent": "00-ñ-😀"}; without|-|-`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	exec(t, pool, "alter table outbox drop column clave_orden, drop column cabeceras")
	m = message("plain")
	m.Headers = map[string]string{} // empty needs nothing
	mustEnqueue(t, pool, outbox.Table{}, m)
	if _, err := (outbox.Table{}).Enqueue(t.Context(), begin(t, pool), message("plain alone")); err != nil {
		t.Error(err)
	}
}

// fillKeyIndex puts the name of the table's unique index in a statement.
func fillKeyIndex(t testing.TB, pool *pgxpool.Pool, statement string) string {
	t.Helper()
	name := value[string](t, pool, `select indexrelid::regclass::text from pg_index where indrelid = 'outbox'::regclass and indisunique and not indisprimary`)
	return strings.ReplaceAll(statement, "{{key}}", name)
}

// A trigger of the application's may drop the row; a loop that waits for it would never end.
func TestEnqueueGivesUpWhenSomethingInTheDatabaseSwallowsTheRow(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	exec(t, pool, `create function swallow() returns trigger language plpgsql as 'begin return null; end';
		create trigger swallow before insert on outbox for each row execute function swallow()`)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, enqueue := range map[string]func(pgx.Tx) error{
		"one": func(tx pgx.Tx) error {
			_, err := outbox.Table{}.Enqueue(ctx, tx, message("k"))
			return err
		},
		"many": func(tx pgx.Tx) error {
			_, err := outbox.Table{}.EnqueueMany(ctx, tx, []outbox.Message{message("k")})
			return err
		},
	} {
		tx := begin(t, pool)
		if err := enqueue(tx); err == nil || ctx.Err() != nil {
			t.Errorf("%s: got %v, want an error soon", name, err)
		}
	}
}
