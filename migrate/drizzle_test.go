package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// drizzles are tables as the TypeScript package makes them, by the application's choices.
var drizzles = []struct {
	table outbox.Table
	more  string
}{
	{outbox.Table{}, ""},
	{outbox.Table{}, ", sucursal text not null default 'centro', prioridad integer default 3"},
	{outbox.Table{Schema: "App", Name: "Salida", TenantColumn: "empresaId", TenantType: outbox.TenantText}, ""},
}

func TestUpAddsToATableOfDrizzlesAndTakesNothing(t *testing.T) {
	t.Parallel()
	for i, test := range drizzles {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			conn := fresh(t)
			rows := drizzle(t, conn, test.table, test.more)
			before := strings.Split(catalog(t, conn, test.table), "\n")
			const file = "select pg_relation_filenode($1::text::regclass)::integer"
			fileBefore := value[int](t, conn, file, test.table.String())
			up(t, conn, test.table)

			complete(t, conn, test.table)
			if got := rowsOf(t, conn, test.table); got != rows {
				t.Errorf("got %s, want the rows as they were: %s", got, rows)
			}
			if got := value[int](t, conn, file, test.table.String()); got != fileBefore {
				t.Error("the table was rewritten")
			}
			after := catalog(t, conn, test.table)
			for _, line := range before {
				if !strings.Contains(after, line) {
					t.Errorf("%q is gone", line)
				}
			}
			const indexes = "select count(*) from pg_index where indrelid = $1::text::regclass"
			if got := value[int](t, conn, indexes, test.table.String()); got != 5 {
				t.Errorf("got %d indexes, want the three that were there and two of the migration's", got)
			}
			if err := enqueue(t.Context(), conn, test.table, "k"); err != nil {
				t.Error(err)
			}
			if err := migrate.Down(t.Context(), conn, test.table); err != nil {
				t.Fatal(err)
			}
			if got := value[int](t, conn, "select count(*) from "+test.table.String()); got != 501 {
				t.Errorf("after down: got %d rows, want 501", got)
			}
		})
	}
}

// An open transaction that has inserted holds up each lock that Up needs. Whoever enqueues meanwhile must not queue behind
// Up for longer than its short lock_timeout.
func TestUpLetsEnqueueingGoOnWhileItWaitsForAnOpenTransaction(t *testing.T) {
	t.Parallel()
	const optional = ", clave_orden text, cabeceras jsonb"
	for _, test := range []struct{ waitsIn, more, damage string }{
		{"%alter table%add column%", "", ""},
		{"%create index concurrently%", optional, ""},
		{"%create or replace function%", optional, "drop trigger zz_outbox_wake on outbox"},
		{"%lock table%", optional, "create or replace trigger zz_outbox_wake after insert on outbox referencing new table as new_rows execute function {{function}}()"},
	} {
		t.Run(strings.Trim(test.waitsIn, "%"), func(t *testing.T) {
			t.Parallel()
			conn := fresh(t)
			business, writer, watcher := beside(t, conn), beside(t, conn), beside(t, conn)
			drizzle(t, conn, outbox.Table{}, test.more)
			if test.damage != "" {
				up(t, conn, outbox.Table{})
				exec(t, conn, sql.Fill(test.damage, outbox.Table{}.Names()))
			}
			open, err := business.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			exec(t, open.Conn(), "insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia) values ($1, '', '', '', 'open')", tenant)
			done := start(t, func() error { return migrate.Up(t.Context(), conn, outbox.Table{}) })
			for i := range 4 {
				eventually(t, watcher, waits, test.waitsIn)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if err := enqueue(ctx, writer, outbox.Table{}, fmt.Sprint(i)); err != nil {
					t.Errorf("enqueue while Up waits: %v", err)
				}
				cancel()
			}
			select {
			case err := <-done:
				t.Errorf("Up did not wait for the open transaction: %v", err)
			default:
			}
			if err := open.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			complete(t, conn, outbox.Table{})
			if got := value[int](t, conn, "select count(*) from outbox where clave_idempotencia in ('open', '0', '1', '2', '3')"); got != 5 {
				t.Errorf("got %d messages, want 5", got)
			}
		})
	}
}

func TestUpNamesTheColumnThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		change string
		table  outbox.Table
		words  []string
	}{
		{"alter table outbox drop column id_externo", outbox.Table{}, []string{"id_externo is missing"}},
		{"alter table outbox alter intentos type smallint, drop enviado_en", outbox.Table{}, []string{"intentos is smallint instead of integer", "enviado_en is missing"}},
		{"select 1", outbox.Table{TenantColumn: "empresa"}, []string{"empresa is missing", "Table.TenantColumn"}},
		{"select 1", outbox.Table{TenantType: outbox.TenantText}, []string{"organizacion_id is uuid instead of text", "Table.TenantType"}},
		{"drop table outbox; create table outbox (id bigint)", outbox.Table{}, []string{"id is bigint instead of uuid", "canal is missing"}},
	} {
		t.Run(test.change, func(t *testing.T) {
			t.Parallel()
			conn := fresh(t)
			drizzle(t, conn, outbox.Table{}, "")
			exec(t, conn, test.change)
			before := catalog(t, conn, outbox.Table{})
			refused(t, migrate.Up(t.Context(), conn, test.table), outbox.ErrSchema, test.words...)
			if after := catalog(t, conn, outbox.Table{}); after != before {
				t.Errorf("got\n%s\nwant\n%s", after, before)
			}
		})
	}
}

func TestUpSaysWhatToDoAboutKeysThatAreThereTwice(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	drizzle(t, conn, outbox.Table{}, "")
	exec(t, conn, "drop index outbox_tenant_clave_idem_key")
	exec(t, conn, "insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia) values ($1, '', '', '', 'enviado1')", tenant)
	for range 2 { // the second meets the invalid index that the first has left
		err := migrate.Up(t.Context(), conn, outbox.Table{})
		refused(t, err, outbox.ErrSchema, "same tenant and clave_idempotencia twice", "delete one of each pair and migrate again")
		if text := fmt.Sprint(err); strings.Contains(text, "enviado1") || strings.Contains(text, tenant) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
	if got := value[int](t, conn, "select count(*) from outbox"); got != 501 {
		t.Errorf("got %d rows, want all 501", got)
	}
	exec(t, conn, "delete from outbox where clave_idempotencia = 'enviado1' and canal = ''")
	up(t, conn, outbox.Table{})
	complete(t, conn, outbox.Table{})
	if got := value[int](t, conn, "select count(*) from pg_index where indrelid = 'outbox'::regclass and not indisvalid"); got != 0 {
		t.Errorf("got %d invalid indexes left", got)
	}
}

func TestUpKeepsStorageSettingsThatSomebodyChose(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	drizzle(t, conn, outbox.Table{}, "")
	exec(t, conn, "alter table outbox set (fillfactor = 70)")
	up(t, conn, outbox.Table{})
	complete(t, conn, outbox.Table{})
	if got := value[string](t, conn, "select reloptions::text from pg_class where oid = 'outbox'::regclass"); got != "{fillfactor=70}" {
		t.Errorf("got %s, want {fillfactor=70}", got)
	}
}
