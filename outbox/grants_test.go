package outbox_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// role makes a role without any right, and gives a session that has become it.
func role(t *testing.T, pool *pgxpool.Pool) (name string, conn *pgx.Conn) {
	t.Helper()
	name = "outbox_test_" + strings.ToLower(rand.Text())
	exec(t, pool, "create role "+name)
	t.Cleanup(func() { // roles belong to the server and outlive the database
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := pool.Exec(ctx, "drop owned by "+name+"; drop role "+name); err != nil {
			t.Error(err)
		}
	})
	conn = connect(t, pool)
	exec(t, conn, "set role "+name)
	return name, conn
}

// All that the README asks for, and an empty search_path beside it.
func TestEnqueueingRoleNeedsInsertAndToReadTheKeyAndNothingElse(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "mensajes"}
	pool := built(t, table)
	name, conn := role(t, pool)
	exec(t, conn, "set search_path = ''")
	exec(t, pool, "revoke execute on all functions in schema mensajes from public")
	m := message("k")
	m.OrderingKey, m.Headers = "o", map[string]string{"a": "b"}
	enqueue := func() error {
		return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			for range 2 { // the second is a duplicate
				if _, err := table.Enqueue(t.Context(), tx, m); err != nil {
					return err
				}
			}
			_, err := table.EnqueueMany(t.Context(), tx, []outbox.Message{m, message("a"), message("a")})
			return err
		})
	}
	for _, grant := range []string{
		"grant usage on schema mensajes to " + name,
		"grant insert on mensajes.outbox to " + name,
		"grant select (id, organizacion_id, clave_idempotencia) on mensajes.outbox to " + name,
	} {
		if err := enqueue(); outbox.SQLState(err) != "42501" {
			t.Errorf("before %q: got %v, want 42501, insufficient privilege", grant, err)
		}
		exec(t, pool, grant)
	}
	if err := enqueue(); err != nil {
		t.Error(err)
	}
	if got := value[int](t, pool, "select count(*) from mensajes.outbox"); got != 2 {
		t.Errorf("got %d rows, want 2", got)
	}
}

func TestPurgingRoleNeedsToReadUpdateAndDelete(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "mensajes"}
	pool := built(t, table)
	name, conn := role(t, pool)
	mustEnqueue(t, pool, table, message("k"))
	exec(t, pool, "update mensajes.outbox set estado = 'enviado'")
	for _, grant := range []string{
		"grant usage on schema mensajes to " + name,
		"grant delete on mensajes.outbox to " + name,
		"grant select on mensajes.outbox to " + name,
		"grant update (estado) on mensajes.outbox to " + name, // it locks what it deletes
	} {
		if _, err := table.Purge(t.Context(), conn, time.Now().Add(time.Hour)); outbox.SQLState(err) != "42501" {
			t.Errorf("before %q: got %v, want 42501, insufficient privilege", grant, err)
		}
		exec(t, pool, grant)
	}
	if n, err := table.Purge(t.Context(), conn, time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("got %d, %v, want 1", n, err)
	}
}

// operations are what people and relays do, each with all the grants that the README names for it beside usage on the schema.
var operations = []struct {
	name   string
	grants []string // of OUTBOX, its table of PAUSES
	do     func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error
}{
	{"status", []string{"select on OUTBOX", "select on PAUSES"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := admin.Look(ctx, conn, table)
		return err
	}},
	{"list", []string{"select on OUTBOX"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := admin.List(ctx, conn, table, admin.Filter{}, "", 10)
		return err
	}},
	{"redrive", []string{"select on OUTBOX", "update on OUTBOX"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := admin.Redrive(ctx, conn, table, admin.Filter{}, admin.ChangeOptions{})
		return err
	}},
	{"cancel", []string{"select on OUTBOX", "update on OUTBOX"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := admin.Cancel(ctx, conn, table, admin.Filter{}, "", "", admin.ChangeOptions{})
		return err
	}},
	{"pause", []string{"select on PAUSES", "insert on PAUSES"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := admin.Pause(ctx, conn, table, "correo", "")
		return err
	}},
	{"resume", []string{"select on PAUSES", "delete on PAUSES"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := admin.Resume(ctx, conn, table, "correo", "")
		return err
	}},
	{"the pauses of a relay", []string{"select on PAUSES"}, func(ctx context.Context, conn *pgx.Conn, table outbox.Table) error {
		_, err := table.Pauses(ctx, conn)
		return err
	}},
}

func TestEachOperationNeedsTheGrantsOfTheReadmeAndSaysSo(t *testing.T) {
	t.Parallel()
	table := outbox.Table{Schema: "mensajes"}
	pool := built(t, table)
	for _, state := range []string{"pendiente", "fallido"} {
		mustEnqueue(t, pool, table, message(state))
		exec(t, pool, "update mensajes.outbox set estado = $1 where clave_idempotencia = $1", state)
	}
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			name, conn := role(t, pool)
			exec(t, conn, "set search_path = ''")
			exec(t, pool, "grant usage on schema mensajes to "+name)
			for _, grant := range o.grants {
				if err := o.do(t.Context(), conn, table); err == nil || !strings.Contains(err.Error(), "grant") {
					t.Errorf("before %q: got %v, want to be told of a grant", grant, err)
				}
				grant = strings.NewReplacer("OUTBOX", table.String(), "PAUSES", table.Names()["pause_table"]).Replace(grant)
				exec(t, pool, "grant "+grant+" to "+name)
			}
			if err := o.do(t.Context(), conn, table); err != nil {
				t.Error(err)
			}
		})
	}
}
