package migrate_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// names are outboxes that share a database, two of them a schema.
var names = []outbox.Table{
	{},
	{Name: "salida", TenantColumn: "empresa", TenantType: outbox.TenantText},
	{Schema: "Men sajes", Name: `out"box; --.`, TenantColumn: "Tenant"},
	{Schema: "Men sajes", Name: strings.Repeat("ñ", 31)},
}

func TestUpBuildsEachOutboxOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	for _, table := range names {
		if version, newest, err := migrate.Status(t.Context(), conn, table); err != nil || version != 0 || newest < 1 {
			t.Errorf("%s, before: got version %d of %d, %v, want 0", table, version, newest, err)
		}
		up(t, conn, table)
	}
	for _, table := range names {
		complete(t, conn, table)
		if err := enqueue(t.Context(), conn, table, "k"); err != nil {
			t.Error(err)
		}
	}
}

func TestSecondUpChangesNothing(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	up(t, conn, outbox.Table{})
	// Every object with its place and version: one that was made or written again differs.
	const objects = `select string_agg(concat_ws(' ', oid, relname, xmin, relfilenode), e'\n' order by oid) || (select string_agg(concat_ws(' ', oid, xmin), e'\n'
		order by oid) from pg_proc where proname like 'outbox%') || (select string_agg(concat_ws(' ', oid, xmin), e'\n') from pg_trigger)
		from pg_class where relnamespace = 'public'::regnamespace`
	before, catalogBefore := value[string](t, conn, objects), catalog(t, conn, outbox.Table{})
	up(t, conn, outbox.Table{})
	if after := value[string](t, conn, objects); after != before {
		t.Errorf("got\n%s\nwant\n%s", after, before)
	}
	if after := catalog(t, conn, outbox.Table{}); after != catalogBefore {
		t.Errorf("got\n%s\nwant\n%s", after, catalogBefore)
	}
}

func TestDownKeepsTheMessagesAndOtherOutboxesAndUpBringsItBack(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	for _, table := range names {
		up(t, conn, table)
		if err := enqueue(t.Context(), conn, table, "k"); err != nil {
			t.Fatal(err)
		}
	}
	for i, table := range names {
		full, rows := catalog(t, conn, table), rowsOf(t, conn, table)
		for range 2 { // the second finds nothing to do
			if err := migrate.Down(t.Context(), conn, table); err != nil {
				t.Fatal(err)
			}
		}
		in, err := table.Inspect(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if in.Trigger != outbox.TriggerMissing || in.DueIndex != nil || in.FailedIndex != nil || !in.Pauses || !in.KeyIndex || !in.Optional() || in.ColumnsFit() != nil {
			t.Errorf("%s: got %+v, want no trigger and no due index, and the rest", table, in)
		}
		if version, _, err := migrate.Status(t.Context(), conn, table); version != 0 || err != nil {
			t.Errorf("%s: got version %d, %v, want 0", table, version, err)
		}
		hash := strings.TrimPrefix(table.Channel(), "outbox_")
		const remains = `select count(*) from (select relname from pg_class union all select proname from pg_proc) n(name)
			where name like '%' || $1 and name not like 'outbox_key%' and name not like 'outbox_pause_%'`
		if got := value[int](t, conn, remains, hash); got != 0 {
			t.Errorf("%s: got %d functions, indexes and version tables left", table, got)
		}
		if got := rowsOf(t, conn, table); got != rows {
			t.Errorf("%s: got %s, want the messages as they were: %s", table, got, rows)
		}
		if err := enqueue(t.Context(), conn, table, "after down"); err != nil {
			t.Error(err)
		}
		complete(t, conn, names[(i+1)%len(names)])

		up(t, conn, table)
		complete(t, conn, table)
		if got := catalog(t, conn, table); got != full {
			t.Errorf("%s, up again: got\n%s\nwant\n%s", table, got, full)
		}
	}
}

func TestDownOfAnOutboxThatIsNotThereLeavesNothing(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	for _, table := range []outbox.Table{{}, {Schema: "nirgends"}} {
		if err := migrate.Down(t.Context(), conn, table); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
	const all = "select (select count(*) from pg_class where relname like 'outbox%') + (select count(*) from pg_namespace where nspname = 'nirgends')"
	if got := value[int](t, conn, all); got != 0 {
		t.Errorf("got %d tables and schemas, want none", got)
	}
}

// statements splits a script as psql does: at the end of a line, and not inside a function's body.
func statements(script string) (all []string) {
	var current strings.Builder
	inside := false
	for line := range strings.Lines(script) {
		current.WriteString(line)
		if strings.Count(line, "$outbox$")%2 == 1 {
			inside = !inside
		}
		if !inside && strings.HasSuffix(strings.TrimSpace(line), ";") {
			all = append(all, current.String())
			current.Reset()
		}
	}
	return append(all, current.String())
}

func TestPrintedSQLBuildsWhatUpBuilds(t *testing.T) {
	t.Parallel()
	built, printed := fresh(t), fresh(t)
	for _, table := range names {
		up(t, built, table)
		script, err := migrate.SQL(table)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it may be run again
			for _, statement := range statements(script) {
				if _, err := printed.PgConn().Exec(t.Context(), statement).ReadAll(); err != nil {
					t.Fatalf("%v in: %s", err, statement)
				}
			}
			complete(t, printed, table)
			if got, want := catalog(t, printed, table), catalog(t, built, table); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", table, got, want)
			}
		}
		before := catalog(t, printed, table)
		up(t, printed, table)
		if got := catalog(t, printed, table); got != before {
			t.Errorf("%s: Up after the script: got\n%s\nwant\n%s", table, got, before)
		}
		if err := enqueue(t.Context(), printed, table, "k"); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryWayInRefusesANameThatPostgresCannotHold(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Name: strings.Repeat("a", 64)}
	_, scriptErr := migrate.SQL(table)
	_, _, statusErr := migrate.Status(t.Context(), nil, table)
	for _, err := range []error{scriptErr, statusErr, migrate.Up(t.Context(), nil, table), migrate.Down(t.Context(), nil, table)} {
		refused(t, err, outbox.ErrInvalidOptions, "Table.Name")
	}
}

func TestRoleWithoutRightsIsToldWhatItLacks(t *testing.T) {
	t.Parallel()
	owner := fresh(t)
	name := "outbox_test_" + strings.ToLower(rand.Text())
	exec(t, owner, "create role "+name)
	t.Cleanup(func() { // roles belong to the server and outlive the database
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := owner.Exec(ctx, "drop owned by "+name+"; drop role "+name); err != nil {
			t.Error(err)
		}
	})
	exec(t, owner, "create schema mensajes; create schema ajena; grant usage on schema mensajes, ajena to "+name)
	drizzle(t, owner, outbox.Table{Schema: "ajena"}, "")
	exec(t, owner, "grant create on schema ajena to "+name)
	conn := beside(t, owner)
	exec(t, conn, "set role "+name)
	for _, test := range []struct {
		table outbox.Table
		word  string
	}{
		{outbox.Table{Schema: "neu"}, "permission denied for database"},
		{outbox.Table{Schema: "mensajes"}, "permission denied for schema mensajes"},
		{outbox.Table{Schema: "ajena"}, "must be owner of table outbox"},
	} {
		err := migrate.Up(t.Context(), conn, test.table)
		refused(t, err, nil, test.word, test.table.String(), "run it as the owner of the table", `grant create on schema "`+test.table.Schema+`" to this role`)
		if state := outbox.SQLState(err); state != "42501" {
			t.Errorf("%s: got SQLSTATE %q, want 42501", test.table, state)
		}
	}
	exec(t, owner, "grant create on schema mensajes to "+name)
	up(t, conn, outbox.Table{Schema: "mensajes"}) // the lock was given back, and no other right is needed
	complete(t, conn, outbox.Table{Schema: "mensajes"})
}

func TestUpThatWaitsForAnotherMigrationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	other := beside(t, conn)
	exec(t, other, "select pg_advisory_lock($1::bigint)", int64(0x6f7574626f78))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := start(t, func() error { return migrate.Up(ctx, conn, outbox.Table{}) })
	eventually(t, other, "select exists (select from pg_stat_activity where datname = current_database() and query like '%pg_try_advisory_lock%' and pid <> pg_backend_pid())")
	cancel()
	err := <-done
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if value[bool](t, other, "select exists (select from pg_class where relname = 'outbox')") {
		t.Error("it went on without the lock")
	}
}
