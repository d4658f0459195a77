package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// odd are names that break what quotes carelessly, cuts at 63 bytes, or looks into the search_path.
var odd = []outbox.Table{
	{},
	{Schema: "mensajes"},
	{Schema: "Salida", Name: "Outbox", TenantColumn: "OrganizacionID"},
	{Schema: "with space", Name: "out box", TenantColumn: "the tenant"},
	{Schema: `quo"te`, Name: `'out"box'`, TenantColumn: `te"nant'`},
	{Schema: "dot.ted", Name: "out.box", TenantColumn: "te.nant"},
	{Schema: strings.Repeat("s", 63), Name: strings.Repeat("t", 63), TenantColumn: strings.Repeat("c", 63)},
	{Schema: strings.Repeat("s", 63), Name: strings.Repeat("t", 62) + "u", TenantColumn: "organizacion_id"}, // alike in all but the last byte
	{Schema: strings.Repeat("ñ", 31), Name: strings.Repeat("😀", 15) + "abc", TenantColumn: strings.Repeat("€", 21)},
	{Schema: "select", Name: "table", TenantColumn: "order"},
	{Schema: "{{table}}", Name: "{{schema}}", TenantColumn: "$1"},
	{Schema: "%s", Name: "$outbox$; --", TenantColumn: `\`},
	{Name: "tenant_is_text", TenantColumn: "due", TenantType: outbox.TenantText},
}

func TestAnyNameThatPostgresAllowsWorks(t *testing.T) {
	t.Parallel()
	pool := built(t, odd...)
	before := time.Now().Add(time.Hour)
	for _, table := range odd {
		for _, way := range drivers {
			tx := way.begin(t, pool, table)
			for _, isNew := range []bool{true, false} {
				if got, err := tx.enqueue(message(way.name)); err != nil || got.New != isNew {
					t.Errorf("%s, %s: got %+v, %v, want new %t", table, way.name, got, err, isNew)
				}
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
		}
		m := message("many")
		m.OrderingKey = "o"
		mustEnqueue(t, pool, table, m, message(drivers[0].name))
		if in, err := table.Inspect(t.Context(), pool); err != nil || in.Fit() != nil || in.Trigger != outbox.TriggerOn || !in.KeyIndex || !in.Optional() {
			t.Errorf("%s: got %+v, %v, want it complete", table, in, err)
		}
		exec(t, pool, "update "+table.String()+" set estado = 'enviado' where clave_idempotencia = 'many'")
		if deleted, err := table.Purge(t.Context(), pool, before); err != nil || deleted != 1 {
			t.Errorf("%s: got %d, %v, want 1 purged", table, deleted, err)
		}
		if got := value[int](t, pool, "select count(*) from "+table.String()); got != len(drivers) {
			t.Errorf("%s: got %d rows, want %d", table, got, len(drivers))
		}
	}
}

// What the trigger says and where the relay listens are named in two places.
func TestTriggerNotifiesOnTheChannelOfItsTableOnly(t *testing.T) {
	t.Parallel()
	pool := built(t, odd...)
	listener := connect(t, pool)
	tables := map[string]outbox.Table{}
	for _, table := range odd {
		channel := table.Channel()
		if other, taken := tables[channel]; taken {
			t.Fatalf("%s and %s have one channel", table, other)
		}
		if len(channel) > 63 {
			t.Fatalf("%s: the channel has %d bytes, Postgres cuts it at 63", table, len(channel))
		}
		tables[channel] = table
		exec(t, listener, "listen "+pgx.Identifier{channel}.Sanitize())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, table := range odd {
		mustEnqueue(t, pool, table, message("k"))
		got, err := listener.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got.Channel != table.Channel() || !strings.HasPrefix(got.Payload, "x") {
			t.Errorf("%s: got %q on %s (%s), want x and a transaction on %s", table, got.Payload, got.Channel, tables[got.Channel], table.Channel())
		}
	}
}

func TestTriggerCallsNoFunctionOfTheSearchPath(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	exec(t, pool, `create schema decoy; create function decoy.pg_notify(text, text) returns void language plpgsql as 'begin raise exception ''decoy''; end'`)
	listener, conn := connect(t, pool), connect(t, pool)
	exec(t, listener, "listen "+outbox.Table{}.Channel())
	exec(t, conn, "set search_path = decoy, pg_catalog, public")
	exec(t, conn, "insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia) values ($1, '', '', '', 'k')", tenant)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := listener.WaitForNotification(ctx); err != nil {
		t.Error(err)
	}
}

func TestTableOfTheSameNameInTheSearchPathStaysUntouched(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "mensajes"}
	pool := built(t, table)
	exec(t, pool, "create schema decoy")
	exec(t, pool, "create table decoy.outbox (like mensajes.outbox including all)")
	exec(t, pool, "create table public.outbox (like mensajes.outbox including all)")
	exec(t, pool, "insert into decoy.outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado) values ($1, '', '', '', 'k', 'enviado')", tenant)
	const decoys = `select (select string_agg(concat(xmin, xmax, d::text), '') from decoy.outbox d) || (select count(*) from public.outbox)`
	before := value[string](t, pool, decoys)
	for _, path := range []string{"decoy, public", ""} {
		conn := connect(t, pool)
		exec(t, conn, fmt.Sprintf("set search_path = '%s'", strings.ReplaceAll(path, ", ", "', '")))
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			if got, err := table.Enqueue(t.Context(), tx, message("k"+path)); err != nil || !got.New {
				t.Errorf("search_path %q: got %+v, %v, want it new", path, got, err)
			}
			if got, err := table.Enqueue(t.Context(), tx, message("k"+path)); err != nil || got.New {
				t.Errorf("search_path %q, again: got %+v, %v, want the existing one", path, got, err)
			}
			_, err := table.EnqueueMany(t.Context(), tx, []outbox.Message{message("m" + path)})
			return err
		})
		if err != nil {
			t.Errorf("search_path %q: %v", path, err)
		}
		exec(t, conn, "update mensajes.outbox set estado = 'enviado'")
		if n, err := table.Purge(t.Context(), conn, time.Now().Add(time.Hour)); n != 2 || err != nil {
			t.Errorf("search_path %q: purged %d, %v, want 2", path, n, err)
		}
		if in, err := table.Inspect(t.Context(), conn); err != nil || in.Trigger != outbox.TriggerOn || in.Fit() != nil {
			t.Errorf("search_path %q: got %+v, %v, want it complete", path, in, err)
		}
		if err := migrate.Down(t.Context(), conn, table); err != nil {
			t.Errorf("search_path %q: %v", path, err)
		}
		if err := migrate.Up(t.Context(), conn, table); err != nil {
			t.Errorf("search_path %q: %v", path, err)
		}
	}
	if after := value[string](t, pool, decoys); after != before {
		t.Errorf("got %s, want %s", after, before)
	}
	const foreign = "select count(*) from pg_trigger where tgrelid in ('decoy.outbox'::regclass, 'public.outbox'::regclass)"
	if got := value[int](t, pool, foreign); got != 0 {
		t.Errorf("the other tables got %d triggers", got)
	}
}

func TestValidateRefusesNamesThatPostgresCannotHold(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	for field, tables := range map[string][]outbox.Table{
		"Schema": {{Schema: long}, {Schema: "a\x00"}, {Schema: "\xff"}, {Schema: strings.Repeat("ñ", 32)}},
		"Name":   {{Name: long}, {Name: "a\x00"}, {Name: "\xff"}},
		"TenantColumn": {{TenantColumn: long}, {TenantColumn: "a\x00"}, {TenantColumn: "\xff"}, {TenantColumn: "id"}, {TenantColumn: "datos"},
			{TenantColumn: "clave_orden"}, {TenantColumn: "cabeceras"}},
		"TenantType": {{TenantType: "integer"}, {TenantType: "UUID"}},
	} {
		for _, table := range tables {
			refused(t, table.Validate(), outbox.ErrInvalidOptions, "Table."+field)
			_, err := table.Enqueue(t.Context(), untouched{}, message("k"))
			refused(t, err, outbox.ErrInvalidOptions, "Table."+field)
			_, err = table.EnqueueMany(t.Context(), untouched{}, []outbox.Message{message("k")})
			refused(t, err, outbox.ErrInvalidOptions, "Table."+field)
			_, err = table.Inspect(context.Background(), nil)
			refused(t, err, outbox.ErrInvalidOptions, "Table."+field)
		}
	}
}
