package outbox_test

import (
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
)

func inspect(t *testing.T, table outbox.Table, db outbox.DB) outbox.Inspection {
	t.Helper()
	in, err := table.Inspect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestInspectTellsEachStateOfTheTrigger(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	tests := []struct {
		change string
		want   outbox.TriggerState
	}{
		{"select 1", outbox.TriggerOn},
		{"alter table outbox disable trigger zz_outbox_wake", outbox.TriggerDisabled},
		{"alter table outbox enable always trigger zz_outbox_wake", outbox.TriggerOn},
		{"alter table outbox enable replica trigger zz_outbox_wake", outbox.TriggerDisabled},
		{"alter table outbox disable trigger all", outbox.TriggerDisabled},
		{"alter table outbox enable trigger all", outbox.TriggerOn},
		{`create function other() returns trigger language plpgsql as 'begin perform pg_notify(''other'', ''''); return null; end';
			create or replace trigger zz_outbox_wake after insert on outbox execute function other()`, outbox.TriggerElsewhere},
		{"drop function other() cascade", outbox.TriggerMissing},
	}
	for _, test := range tests {
		exec(t, pool, test.change)
		if got := inspect(t, outbox.Table{}, pool).Trigger; got != test.want {
			t.Errorf("after %s: got %q, want %q", test.change, got, test.want)
		}
	}
}

// The channel is made from the names, and the trigger goes on announcing on the old one.
func TestInspectFindsTheTriggerOfARenamedTableElsewhere(t *testing.T) {
	t.Parallel()
	for name, rename := range map[string]struct {
		statement string
		table     outbox.Table
	}{
		"table":  {"alter table outbox rename to salida", outbox.Table{Name: "salida"}},
		"schema": {"create schema mensajes; alter table outbox set schema mensajes", outbox.Table{Schema: "mensajes"}},
	} {
		pool := built(t, outbox.Table{})
		exec(t, pool, rename.statement)
		if got := inspect(t, rename.table, pool).Trigger; got != outbox.TriggerElsewhere {
			t.Errorf("%s: got %q, want %q", name, got, outbox.TriggerElsewhere)
		}
		if in := inspect(t, outbox.Table{}, pool); in.Exists || in.Trigger != outbox.TriggerMissing {
			t.Errorf("%s: got %+v, want nothing under the old name", name, in)
		}
	}
}

func TestInspectTellsWhetherTheIndexesServe(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	in := inspect(t, outbox.Table{}, pool)
	if in.DueIndex == nil || !*in.DueIndex || !in.KeyIndex || in.Fit() != nil {
		t.Fatalf("got %+v, want both indexes", in)
	}
	exec(t, pool, "do $$ begin execute (select string_agg(format('drop index %s', indexrelid::regclass), '; ') from pg_index where indrelid = 'outbox'::regclass and not indisprimary); end $$")
	in = inspect(t, outbox.Table{}, pool)
	if in.DueIndex != nil || in.KeyIndex {
		t.Errorf("got %+v, want neither index", in)
	}
	refused(t, in.Fit(), outbox.ErrSchema, "no valid index", "relay migrate")

	const columns = "(organizacion_id, clave_idempotencia)"
	for _, test := range []struct {
		index string
		want  bool // Enqueue can use it
	}{
		{"create unique index k on outbox " + columns, true},
		{"create unique index k on outbox (clave_idempotencia, organizacion_id)", true},
		{"alter table outbox add constraint k unique " + columns, true},
		{"create index k on outbox " + columns, false},
		{"create unique index k on outbox " + columns + " where estado = 'pendiente'", false},
		{"create unique index k on outbox (clave_idempotencia)", false},
		{"create unique index k on outbox (organizacion_id, clave_idempotencia, canal)", false},
		{"create unique index k on outbox (organizacion_id, lower(clave_idempotencia))", false},
		{"create unique index k on outbox " + columns + " include (id)", true},
	} {
		tx := begin(t, pool)
		exec(t, tx, test.index)
		if got := inspect(t, outbox.Table{}, tx).KeyIndex; got != test.want {
			t.Errorf("%s: got %t, want %t", test.index, got, test.want)
		}
		_, err := outbox.Table{}.Enqueue(t.Context(), tx, message("k"))
		if (err == nil) != test.want {
			t.Errorf("%s: Enqueue says %v, want that it works: %t", test.index, err, test.want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInspectFindsNothingWhereThereIsNothing(t *testing.T) {
	t.Parallel()
	pool := built(t)
	exec(t, pool, "create view outbox as select 1 as id")
	for _, table := range []outbox.Table{{}, {Schema: "nirgends"}} {
		in := inspect(t, table, pool)
		if in.Exists || in.Trigger != outbox.TriggerMissing || len(in.Columns) != 0 {
			t.Errorf("%s: got %+v, want nothing", table, in)
		}
		refused(t, in.Fit(), outbox.ErrSchema, "there is no table "+table.String(), "relay migrate")
	}
}

func TestFitNamesTheColumnsThatAreMissingOrOfAnotherType(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, test := range []struct {
		change string
		words  []string // empty: it fits
	}{
		{"alter table outbox add extra text", nil},
		{"alter table outbox alter canal type varchar(40), alter plantilla type varchar", nil},
		{"alter table outbox drop clave_orden", nil},
		{"alter table outbox drop destino", []string{"destino is missing"}},
		{"alter table outbox rename bloqueado_hasta to x", []string{"bloqueado_hasta is missing"}},
		{"alter table outbox alter datos drop default, alter datos type json", []string{"datos is json instead of jsonb"}},
		{"alter table outbox alter intentos type bigint", []string{"intentos is bigint instead of integer"}},
		{"alter table outbox alter enviado_en type timestamp", []string{"enviado_en is timestamp without time zone instead of timestamp with time zone"}},
		{"alter table outbox alter organizacion_id type text", []string{"organizacion_id is text instead of uuid", "Table.TenantType"}},
		{"alter table outbox rename organizacion_id to empresa", []string{"organizacion_id is missing", "Table.TenantColumn"}},
		{"alter table outbox drop id, drop canal", []string{"canal is missing, id is missing"}},
	} {
		tx := begin(t, pool)
		exec(t, tx, test.change)
		in := inspect(t, outbox.Table{}, tx)
		err := in.ColumnsFit()
		if len(test.words) == 0 {
			if err != nil || in.Fit() != nil {
				t.Errorf("%s: got %v, want it to fit", test.change, err)
			}
		} else {
			refused(t, err, outbox.ErrSchema, append(test.words, in.Table.String())...)
			refused(t, in.Fit(), outbox.ErrSchema, test.words...)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if in := inspect(t, outbox.Table{}, pool); !in.Optional() || !in.Settings {
		t.Errorf("got %+v, want the optional columns and the settings", in)
	}
}

func TestPartitionedTableIsRefused(t *testing.T) {
	t.Parallel()
	pool := built(t)
	exec(t, pool, "create table outbox (id uuid, organizacion_id uuid) partition by hash (id)")
	refused(t, inspect(t, outbox.Table{}, pool).Fit(), outbox.ErrSchema, "partitioned")
}
