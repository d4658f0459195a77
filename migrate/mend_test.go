package migrate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// A build that is cut while it waits leaves an index that is there and never used.
func TestUpThatIsCutIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, more, index string }{
		{"due index", "", "outbox_due_%"},
		{"key index", "; drop index outbox_tenant_clave_idem_key", "outbox_key_%"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := fresh(t)
			business, cut := beside(t, conn), beside(t, conn)
			rows := drizzle(t, conn, outbox.Table{}, ", clave_orden text, cabeceras jsonb")
			exec(t, conn, "select 1"+test.more)
			open, err := business.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			exec(t, business, "insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia) values ($1, '', '', '', 'open')", tenant)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := start(t, func() error { return migrate.Up(ctx, cut, outbox.Table{}) })
			eventually(t, conn, waits, "%create%index concurrently%")
			cancel()
			if err := <-done; err == nil {
				t.Fatal("Up ended well")
			}
			eventually(t, conn, "select not exists (select from pg_stat_activity where datname = current_database() and query ilike '%index concurrently%' and pid <> pg_backend_pid())")
			const invalid = "select count(*) from pg_index where indexrelid::regclass::text like $1 and not indisvalid"
			if got := value[int](t, conn, invalid, test.index); got != 1 {
				t.Fatalf("got %d invalid indexes, want the one that was cut", got)
			}
			if err := open.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			up(t, conn, outbox.Table{})
			complete(t, conn, outbox.Table{})
			if got := value[int](t, conn, invalid, "%"); got != 0 {
				t.Errorf("got %d invalid indexes, want none", got)
			}
			if got := rowsOf(t, conn, outbox.Table{}); got != rows {
				t.Error("the rows have changed")
			}
		})
	}
}

func TestUpPutsBackWhatWasLostSince(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	up(t, conn, outbox.Table{})
	whole := catalog(t, conn, outbox.Table{})
	for name, loss := range map[string]string{
		"trigger":      "drop trigger zz_outbox_wake on outbox",
		"function":     "do $$ begin execute (select format('drop function %s cascade', oid::regprocedure) from pg_proc where proname like 'outbox_wake_%'); end $$",
		"due index":    "do $$ begin execute (select format('drop index %s', oid::regclass) from pg_class where relname like 'outbox_due_%'); end $$",
		"key index":    "do $$ begin execute (select format('drop index %s', oid::regclass) from pg_class where relname like 'outbox_key_%'); end $$",
		"failed index": "do $$ begin execute (select format('drop index %s', oid::regclass) from pg_class where relname like 'outbox_failed_%'); end $$",
		"elsewhere":    "create function f() returns trigger language plpgsql as 'begin return null; end'; create or replace trigger zz_outbox_wake after insert on outbox execute function f()",
		"the column":   "alter table outbox drop column cabeceras",
	} {
		exec(t, conn, loss)
		if catalog(t, conn, outbox.Table{}) == whole {
			t.Errorf("%s: nothing was lost", name)
		}
		up(t, conn, outbox.Table{})
		complete(t, conn, outbox.Table{})
		if got := catalog(t, conn, outbox.Table{}); got != whole {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, whole)
		}
	}
}

func TestUpLeavesADisabledTriggerDisabled(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	up(t, conn, outbox.Table{})
	exec(t, conn, "alter table outbox disable trigger zz_outbox_wake")
	up(t, conn, outbox.Table{})
	in, err := outbox.Table{}.Inspect(t.Context(), conn)
	if err != nil || in.Trigger != outbox.TriggerDisabled {
		t.Errorf("got %q, %v, want it disabled", in.Trigger, err)
	}
}

// What is there is looked at before it is made, and both under one lock, the schema included.
func TestTenProcessesMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			conn := fresh(t)
			table := outbox.Table{Schema: "mensajes"}
			if round%3 == 2 {
				drizzle(t, conn, table, "")
			}
			conns := make([]*pgx.Conn, 10)
			for i := range conns {
				conns[i] = beside(t, conn)
			}
			gate := make(chan struct{})
			var done []<-chan error
			for _, c := range conns {
				done = append(done, start(t, func() error {
					<-gate
					return migrate.Up(t.Context(), c, table)
				}))
			}
			close(gate)
			for _, answer := range done {
				if err := <-answer; err != nil {
					t.Error(err)
				}
			}
			complete(t, conn, table)
			if err := enqueue(t.Context(), conn, table, "k"); err != nil {
				t.Error(err)
			}
		})
	}
}

// ternLock is the advisory lock of every program that migrates by tern.
const ternLock = int64(9628173550095224)

// The application's own migration waits for tern's lock with a snapshot, for which the build of the index waits in turn.
func TestUpOutlastsADeadlockWithAnotherProgramThatMigratesByTern(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	rows := drizzle(t, conn, outbox.Table{}, ", clave_orden text, cabeceras jsonb")
	config, err := pgx.ParseConfig(conn.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["deadlock_timeout"] = "50ms" // Up is the one that gives way
	migrating, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = migrating.Close(context.Background()) })
	business, application := beside(t, conn), beside(t, conn)
	exec(t, application, "set deadlock_timeout = '1min'")
	open, err := business.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, business, "lock table outbox in row exclusive mode")
	done := start(t, func() error { return migrate.Up(t.Context(), migrating, outbox.Table{}) })
	eventually(t, conn, waits, "%create index concurrently%")
	locked := start(t, func() error {
		_, err := application.Exec(t.Context(), "select pg_advisory_lock($1)", ternLock)
		return err
	})
	eventually(t, conn, waits, "%select pg_advisory_lock%")
	if err := open.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-locked; err != nil { // Up has given it up
		t.Fatal(err)
	}
	exec(t, application, "select pg_advisory_unlock($1)", ternLock)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	complete(t, conn, outbox.Table{})
	if got := rowsOf(t, conn, outbox.Table{}); got != rows {
		t.Error("the rows have changed")
	}
}

// A trigger that another release made, or that somebody edited, may keep silent while nobody looks. Whether it is enabled is
// for people to say.
func TestUpMakesATriggerAnewThatIsNotAsThisReleaseMakesIt(t *testing.T) {
	t.Parallel()
	const trigger = "create or replace trigger zz_outbox_wake after insert on {{table}} referencing new table as new_rows for each statement execute function {{function}}()"
	for i, test := range []struct{ name, edit string }{
		{"another trigger", trigger},
		{"of an older version", trigger + "; update {{version_table}} set version = 4"},
		{"a trigger for each row", "create or replace trigger zz_outbox_wake after insert on {{table}} for each row execute function {{function}}()"},
		{"another body", "create or replace function {{function}}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$begin perform pg_notify({{channel}}, ''); return null; end$$"},
		{"another channel", "create or replace function {{function}}() returns trigger language plpgsql as 'begin return null; end'"},
		{"no search_path", "alter function {{function}}() reset search_path"},
		{"disabled", trigger + "; alter table {{table}} disable trigger zz_outbox_wake"},
		{"for replicas", trigger + "; alter table {{table}} enable replica trigger zz_outbox_wake"},
		{"for both", trigger + "; alter table {{table}} enable always trigger zz_outbox_wake"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := fresh(t)
			table := drizzles[i%len(drizzles)].table
			names := table.Names()
			const enabled = "select tgenabled::text from pg_trigger where tgname = 'zz_outbox_wake'"
			up(t, conn, table)
			whole := catalog(t, conn, table)
			exec(t, conn, sql.Fill(test.edit, names))
			state, edited := value[string](t, conn, enabled), catalog(t, conn, table)
			differs(t, conn, table, true)
			if edited == whole {
				t.Fatal("nothing was edited")
			}

			up(t, conn, table)
			differs(t, conn, table, false)
			if got := value[string](t, conn, enabled); got != state {
				t.Errorf("the trigger is enabled as %s, want it to stay %s", got, state)
			}
			exec(t, conn, sql.Fill("alter table {{table}} enable trigger zz_outbox_wake", names))
			if got := catalog(t, conn, table); got != whole {
				t.Errorf("got\n%s\nwant\n%s", got, whole)
			}
		})
	}
}

// Inserts wait for whoever replaces a trigger: an Up at each start of a service must not.
func TestUpLeavesATriggerOfThisReleaseAlone(t *testing.T) {
	t.Parallel()
	for _, table := range names {
		conn := fresh(t)
		const written = "select t.xmin::text || ' ' || p.xmin::text from pg_trigger t join pg_proc p on p.oid = t.tgfoid where tgname = 'zz_outbox_wake'"
		differs(t, conn, table, false) // there is none
		up(t, conn, table)
		before := value[string](t, conn, written)
		exec(t, conn, sql.Fill("update {{version_table}} set version = 0", table.Names())) // all steps once more
		up(t, conn, table)
		if after := value[string](t, conn, written); after != before {
			t.Errorf("%s: the trigger was written again: got %s, want %s", table, after, before)
		}
	}
}

func differs(t *testing.T, conn *pgx.Conn, table outbox.Table, want bool) {
	t.Helper()
	if got, err := migrate.TriggerDiffers(t.Context(), conn, table); err != nil || got != want {
		t.Errorf("the trigger differs: got %t, %v, want %t", got, err, want)
	}
}

// Whoever disables it may have begun before Up looked.
func TestUpThatWaitsForATriggerToBeDisabledLeavesItDisabled(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	up(t, conn, outbox.Table{})
	exec(t, conn, sql.Fill("create or replace trigger zz_outbox_wake after insert on {{table}} referencing new table as new_rows for each statement execute function {{function}}()", outbox.Table{}.Names()))
	person, migrating := beside(t, conn), beside(t, conn)
	tx, err := person.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, person, "alter table outbox disable trigger zz_outbox_wake")
	done := start(t, func() error { return migrate.Up(t.Context(), migrating, outbox.Table{}) })
	eventually(t, conn, waits, "%")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	differs(t, conn, outbox.Table{}, false)
	if got := value[string](t, conn, "select tgenabled::text from pg_trigger where tgname = 'zz_outbox_wake'"); got != "D" {
		t.Errorf("the trigger is enabled as %s, want D: disabled", got)
	}
}
