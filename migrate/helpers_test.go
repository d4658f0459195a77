package migrate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const tenant = "0b5f6d0e-6f0c-4c3a-9a43-0d1f6f4f7c11"

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// fresh gives a connection to an empty database.
func fresh(t testing.TB) *pgx.Conn {
	t.Helper()
	return connect(t, pgtest.Database(t))
}

// beside gives another connection to the database of conn.
func beside(t testing.TB, conn *pgx.Conn) *pgx.Conn {
	t.Helper()
	return connect(t, conn.Config().ConnString())
}

func up(t testing.TB, conn *pgx.Conn, table outbox.Table) {
	t.Helper()
	if err := migrate.Up(t.Context(), conn, table); err != nil {
		t.Fatal(err)
	}
}

func exec(t testing.TB, conn *pgx.Conn, statement string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%v in: %s", err, statement)
	}
}

func value[T any](t testing.TB, conn *pgx.Conn, query string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%v in: %s", err, query)
	}
	return v
}

// eventually waits until a query says true.
func eventually(t testing.TB, conn *pgx.Conn, query string, args ...any) {
	t.Helper()
	waitfor.True(t, query, func() bool { return value[bool](t, conn, query, args...) })
}

// waits says whether another session waits for a lock in a statement like $1.
const waits = `select exists (select from pg_stat_activity
	where datname = current_database() and wait_event_type = 'Lock' and query ilike $1::text and pid <> pg_backend_pid())`

// start runs f beside the test. A test that fails before the answer waits for it, since f uses what is closed then.
func start(t testing.TB, f func() error) <-chan error {
	t.Helper()
	answer, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		answer <- f()
	}()
	t.Cleanup(func() { <-ended })
	return answer
}

func refused(t testing.TB, err, want error, words ...string) {
	t.Helper()
	if want != nil && !errors.Is(err, want) || err == nil {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want it to say %q", err, word)
		}
	}
}

// complete fails the test unless the table has all that a relay uses.
func complete(t testing.TB, conn *pgx.Conn, table outbox.Table) {
	t.Helper()
	in, err := table.Inspect(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if in.Operable() != nil || in.Trigger != outbox.TriggerOn || !in.KeyIndex || !in.Optional() || !in.Settings {
		t.Errorf("%s: got %+v, want it complete", table, in)
	}
	version, newest, err := migrate.Status(t.Context(), conn, table)
	if err != nil || version != newest || newest < 1 {
		t.Errorf("%s: got version %d of %d, %v, want the newest", table, version, newest, err)
	}
	if rows := value[int](t, conn, sql.Fill("select count(*) from {{version_table}}", table.Names())); rows != 1 {
		t.Errorf("%s: got %d rows of its version, want 1", table, rows)
	}
}

// enqueue writes one message in a transaction of its own.
func enqueue(ctx context.Context, conn *pgx.Conn, table outbox.Table, key string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := table.Enqueue(ctx, tx, outbox.Message{TenantID: tenant, Channel: "correo", Destination: "ana@example.com", Template: "turno",
			IdempotencyKey: key})
		return err
	})
}

// catalog is what Postgres knows of a table and of what belongs to it, as text.
func catalog(t testing.TB, conn *pgx.Conn, table outbox.Table) string {
	t.Helper()
	return value[string](t, conn, `select concat_ws(e'\n',
		(select string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)),
			e'\n' order by attnum) from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
			where attrelid = c.oid and attnum > 0 and not attisdropped),
		(select string_agg(concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid, obj_description(indexrelid)), e'\n' order by indexrelid::regclass::text)
			from pg_index where indrelid = c.oid),
		(select string_agg(concat_ws(' ', pg_get_triggerdef(g.oid), tgenabled, pg_get_functiondef(tgfoid)), e'\n' order by tgname)
			from pg_trigger g where tgrelid = c.oid),
		(select string_agg(pg_get_constraintdef(oid), e'\n' order by conname) from pg_constraint where conrelid = c.oid),
		obj_description(c.oid), c.reloptions)
		from pg_class c where c.oid = $1::text::regclass`, table.String())
}

// drizzle makes a table as the TypeScript package does, with rows in all states, and returns them as text.
func drizzle(t testing.TB, conn *pgx.Conn, table outbox.Table, more string) (rows string) {
	t.Helper()
	names := table.Names()
	names["more"] = more
	exec(t, conn, sql.Fill(`create schema if not exists {{schema}};
		create table {{table}} (
			id uuid primary key default gen_random_uuid() not null, {{tenant}} {{tenant_type}} not null,
			canal text not null, destino text not null, plantilla text not null, datos jsonb default '{}'::jsonb not null,
			clave_idempotencia text not null, estado text default 'pendiente' not null,
			intentos integer default 0 not null, max_intentos integer default 5 not null,
			programado_para timestamp with time zone default now() not null, proximo_intento_en timestamp with time zone,
			bloqueado_hasta timestamp with time zone, ultimo_error_categoria text, ultimo_error_codigo text, id_externo text,
			enviado_en timestamp with time zone, creado_en timestamp with time zone default now() not null,
			actualizado_en timestamp with time zone default now() not null{{more}}
		);
		create unique index outbox_tenant_clave_idem_key on {{table}} using btree ({{tenant}}, clave_idempotencia);
		create index outbox_pendientes_idx on {{table}} using btree (estado, proximo_intento_en, programado_para)
			where estado in ('pendiente', 'procesando');
		insert into {{table}} ({{tenant}}, canal, destino, plantilla, clave_idempotencia, estado, datos)
		select '`+tenant+`', 'correo', 'ana@example.com', 'turno', e || n, e, '{"a": [1]}'
		from unnest('{pendiente,procesando,enviado,fallido,descartado}'::text[]) e, generate_series(1, 100) n`, names))
	return rowsOf(t, conn, table)
}

// rowsOf is the content of a table without the two optional columns.
func rowsOf(t testing.TB, conn *pgx.Conn, table outbox.Table) string {
	t.Helper()
	return value[string](t, conn, sql.Fill(`select coalesce(string_agg((to_jsonb(o) - 'clave_orden' - 'cabeceras')::text, e'\n' order by o.id), '')
		from {{table}} o`, table.Names()))
}
