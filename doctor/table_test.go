package doctor_test

import (
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// Each damage is found, by itself, and gone once the commands of the finding were run.
func TestDamageToTheTableIsFoundAndMended(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, damage, finding string
		severity              doctor.Severity
	}{
		{"dropped", "drop table OUTBOX", "table-missing", doctor.Broken},
		{"unlogged", "alter table OUTBOX set unlogged", "table-unlogged", doctor.Broken},
		{"an old version", "update VERSION set version = version - 1", "version-old", doctor.Warning},
		{"a column dropped", "alter table OUTBOX drop column id_externo", "column-missing", doctor.Broken},
		{"a column with a default dropped", "alter table OUTBOX drop column intentos", "column-missing", doctor.Broken},
		{"a number for a code", "alter table OUTBOX alter column ultimo_error_codigo type integer using 0", "column-type", doctor.Broken},
		{"a local time", "alter table OUTBOX alter column enviado_en type timestamp", "column-type", doctor.Broken},
		{"a result that must be there", "alter table OUTBOX alter column enviado_en set not null", "column-not-null", doctor.Broken},
		{"a destination that may be missing", "alter table OUTBOX alter column destino drop not null", "column-null", doctor.Warning},
		{"another program's column", "alter table OUTBOX add column sede text not null", "column-required", doctor.Broken},
		{"no default", "alter table OUTBOX alter column creado_en drop default", "column-default", doctor.Broken},
		{"another first state", "alter table OUTBOX alter column estado set default 'nuevo'", "column-default", doctor.Broken},
		{"no headers", "alter table OUTBOX drop column cabeceras", "columns-optional", doctor.Warning},
		{"no due index", "drop index DUE", "due-index-missing", doctor.Broken},
		{"a due index that was cut", "update pg_index set indisvalid = false where indexrelid = 'DUE'::regclass", "due-index-invalid", doctor.Broken},
		{"another due index", "drop index DUE; create index DUENAME on OUTBOX (programado_para, id) where estado in ('pendiente', 'procesando')", "due-index-other", doctor.Broken},
		{"a due index without its states", "drop index DUE; create index DUENAME on OUTBOX (proximo_intento_en)", "due-index-other", doctor.Broken},
		{"no key index", "drop index KEY", "key-index-missing", doctor.Broken},
		{"a key index that was cut", "update pg_index set indisvalid = false where indexrelid = 'KEY'::regclass", "key-index-missing", doctor.Broken},
		{"a key that is checked late", "drop index KEY; alter table OUTBOX add constraint tarde unique (organizacion_id, clave_idempotencia) deferrable", "key-index-missing", doctor.Broken},
		{"no index of what failed", "drop index FAILED", "failed-index-missing", doctor.Warning},
		{"an index of what failed that was cut", "update pg_index set indisvalid = false where indexrelid = 'FAILED'::regclass", "failed-index-missing", doctor.Warning},
		{"no pauses", "drop table PAUSES", "pauses-missing", doctor.Warning},
		{"no primary key", "alter table OUTBOX drop constraint outbox_pkey", "id-index-missing", doctor.Warning},
		{"somebody's index that was cut", "create index otro on OUTBOX (canal); update pg_index set indisvalid = false where indexrelid = 'otro'::regclass", "index-invalid", doctor.Warning},
		{"no trigger", "drop trigger zz_outbox_wake on OUTBOX", "trigger-missing", doctor.Broken},
		{"a trigger that is off", "alter table OUTBOX disable trigger zz_outbox_wake", "trigger-disabled", doctor.Warning},
		{"all triggers off", "alter table OUTBOX disable trigger all", "trigger-disabled", doctor.Warning},
		{"a trigger for replicas", "alter table OUTBOX enable replica trigger zz_outbox_wake", "trigger-disabled", doctor.Warning},
		{"a silent function", "create or replace function FUNCTION() returns trigger language plpgsql as 'begin return null; end'", "trigger-channel", doctor.Broken},
		{"a function of somebody's", "create or replace function FUNCTION() returns trigger language plpgsql as 'begin perform pg_notify(''CHANNEL'', ''''); return null; end'", "trigger-changed", doctor.Broken},
		{"a function without its search_path", "alter function FUNCTION() reset search_path", "trigger-changed", doctor.Broken},
		{"a trigger for each row", "create or replace trigger zz_outbox_wake after insert on OUTBOX for each row execute function FUNCTION()", "trigger-changed", doctor.Broken},
		{"a trigger that always rings", "create or replace trigger zz_outbox_wake after insert on OUTBOX referencing new table as new_rows for each statement execute function FUNCTION()", "trigger-changed", doctor.Broken},
		{"a trigger of another time", "create or replace trigger zz_outbox_wake before insert on OUTBOX for each statement execute function FUNCTION()", "trigger-changed", doctor.Broken},
		{"no settings of vacuum", "alter table OUTBOX reset (autovacuum_vacuum_scale_factor)", "vacuum-settings", doctor.Warning},
		{"no vacuum", "alter table OUTBOX set (autovacuum_enabled = false)", "autovacuum-off", doctor.Warning},
		{"no lease", insert + "; update OUTBOX set estado = 'procesando'", "lease-null", doctor.Broken},
		{"a long lease", insert + "; update OUTBOX set estado = 'procesando', bloqueado_hasta = now() + interval '1 month'", "lease-far", doctor.Warning},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			p.exec(t, fill(p.table, test.damage))
			f := p.suffers(t, p.examine(t), test.finding)
			if f.Severity != test.severity {
				t.Errorf("%s: got %s, want %s", f.Name, f.Severity, test.severity)
			}
			p.mend(t, f)
			p.recovers(t, p.examine(t))
		})
	}
}

func TestHealthyTablesOfAllKindsAreFine(t *testing.T) {
	t.Parallel()
	for _, table := range []outbox.Table{{}, {Schema: "negocio \"x\"", Name: "Salida de 'mensajes'", TenantColumn: "cliente \"y\"", TenantType: outbox.TenantText},
		{Name: "a; -- $outbox$"}} {
		p := newPatientIn(t, pgtest.Database(t), table)
		for _, name := range p.healthy {
			if name != "no-relay" && name != "autovacuum-off" {
				t.Errorf("%s: got %s, want it healthy: %+v", table, name, one(t, p.examine(t), name))
			}
		}
	}
}

// fill replaces the names of what belongs to the table.
func fill(table outbox.Table, statement string) string {
	names := table.Names()
	return strings.NewReplacer("VERSION", names["version_table"], "DUENAME", names["due_index"], "DUE", names["schema"]+"."+names["due_index"],
		"FAILED", names["schema"]+"."+names["failed_index"], "PAUSES", names["pause_table"], "KEY", names["schema"]+"."+names["key_index"], "FUNCTION", names["function"], "CHANNEL", table.Channel()).Replace(statement)
}
