package migrate_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// version4 makes an outbox as it was before there were pauses.
const version4 = `drop table {{pause_table}}; drop index {{schema}}.{{failed_index}}; update {{version_table}} set version = 4`

// A relay of the new version must not stop on a table that is updated beside it, whose owner is another role.
func TestUpFromBeforeThePausesLetsThoseReadThemWhoReadTheOutbox(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	table := outbox.Table{Schema: "negocio"}
	up(t, conn, table)
	exec(t, conn, sql.Fill(version4, table.Names()))
	in, err := table.Inspect(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if in.Fit() != nil {
		t.Errorf("a relay refuses a table of version 4: %v", in.Fit())
	}
	refused(t, in.Operable(), outbox.ErrSchema, "run relay migrate")

	relay, writer := "relay_"+strings.ToLower(rand.Text()), "writer_"+strings.ToLower(rand.Text())
	exec(t, conn, "create role "+relay+"; create role "+writer)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.Background(), "drop owned by "+relay+", "+writer+"; drop role "+relay+", "+writer); err != nil {
			t.Error(err)
		}
	})
	exec(t, conn, "grant select, update on negocio.outbox to "+relay+"; grant insert on negocio.outbox to "+writer)
	up(t, conn, table)
	complete(t, conn, table)
	for role, want := range map[string]bool{relay: true, writer: false} {
		if got := value[bool](t, conn, "select has_table_privilege($1::text, $2::text, 'select')", role, table.Names()["pause_table"]); got != want {
			t.Errorf("%s may read the pauses: got %t, want %t", role, got, want)
		}
	}
	exec(t, conn, sql.Fill("insert into {{pause_table}} (canal) values ('correo')", table.Names()))
	up(t, conn, table)
	if n := value[int](t, conn, sql.Fill("select count(*) from {{pause_table}}", table.Names())); n != 1 {
		t.Errorf("got %d pauses after another up, want the one that there was", n)
	}
}

func TestUpPutsBackALostTableOfPauses(t *testing.T) {
	t.Parallel()
	conn := fresh(t)
	up(t, conn, outbox.Table{})
	exec(t, conn, sql.Fill("drop table {{pause_table}}", outbox.Table{}.Names()))
	up(t, conn, outbox.Table{})
	complete(t, conn, outbox.Table{})
}
