package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/tern/v2/migrate"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// steps are the versions of the definition, in order. A step that was released never changes; new ones follow it. Each is
// safe to run again, because a crash can come between its work and the writing of its version.
func steps(t outbox.Table) []*migrate.Migration {
	s := step{t: t, names: t.Names()}
	all := []*migrate.Migration{
		{Name: "table", UpFunc: s.table, DownFunc: keep},
		{Name: "unique index on tenant and key", UpFunc: s.keyIndex, DownFunc: keep, DisableFuncTx: true},
		{Name: "index on the due time", UpFunc: s.dueIndex, DownFunc: s.dropDueIndex, DisableFuncTx: true},
		{Name: "settings and wake-up trigger", UpFunc: s.trigger, DownFunc: s.dropTrigger},
		{Name: "index of what failed", UpFunc: s.failedIndex, DownFunc: s.dropFailedIndex, DisableFuncTx: true},
		{Name: "pauses", UpFunc: s.pauses, DownFunc: keep},
	}
	for i, m := range all {
		m.Sequence = int32(i) + 1
	}
	return all
}

// mend does again what a version once did, when an inspection shows that it is gone.
func mend(ctx context.Context, conn *pgx.Conn, t outbox.Table) error {
	s := step{t: t, names: t.Names()}
	inTx := func(do migrate.MigrationFunc) error {
		return pgx.BeginFunc(ctx, conn, func(pgx.Tx) error { return do(ctx, conn) })
	}
	if err := inTx(s.table); err != nil {
		return err
	}
	if err := s.keyIndex(ctx, conn); err != nil {
		return err
	}
	if err := s.dueIndex(ctx, conn); err != nil {
		return err
	}
	if err := s.failedIndex(ctx, conn); err != nil {
		return err
	}
	if err := inTx(s.pauses); err != nil {
		return err
	}
	return inTx(s.trigger)
}

type step struct {
	t     outbox.Table
	names sql.Names
}

// keep is the way down of what holds messages.
func keep(context.Context, *pgx.Conn) error { return nil }

func (s step) table(ctx context.Context, conn *pgx.Conn) error {
	in, err := s.t.Inspect(ctx, conn)
	if err != nil {
		return err
	}
	if !in.Exists {
		return s.exec(ctx, conn, sql.Table, sql.Columns)
	}
	if err := in.ColumnsFit(); err != nil {
		return err
	}
	if in.Optional() {
		return nil // the statement would lock the table for nothing
	}
	return s.execLocking(ctx, conn, sql.Columns)
}

func (s step) keyIndex(ctx context.Context, conn *pgx.Conn) error {
	in, err := s.t.Inspect(ctx, conn)
	if err != nil || in.KeyIndex {
		return err
	}
	// One that an interrupted build left invalid blocks the name and helps nobody.
	if err := s.exec(ctx, conn, "drop index concurrently if exists {{schema}}.{{key_index}}", sql.KeyIndex); err != nil {
		if outbox.SQLState(err) == "23505" {
			return fmt.Errorf("%w: %s holds the same tenant and clave_idempotencia twice: delete one of each pair and migrate again", outbox.ErrSchema, s.t)
		}
		return err
	}
	return nil
}

func (s step) dueIndex(ctx context.Context, conn *pgx.Conn) error {
	in, err := s.t.Inspect(ctx, conn)
	if err != nil || in.DueIndex != nil && *in.DueIndex {
		return err
	}
	return s.exec(ctx, conn, dropDueIndex, sql.DueIndex)
}

func (s step) failedIndex(ctx context.Context, conn *pgx.Conn) error {
	in, err := s.t.Inspect(ctx, conn)
	if err != nil || in.FailedIndex != nil && *in.FailedIndex {
		return err
	}
	return s.exec(ctx, conn, dropFailedIndex, sql.FailedIndex)
}

const dropFailedIndex = "drop index concurrently if exists {{schema}}.{{failed_index}}"

func (s step) dropFailedIndex(ctx context.Context, conn *pgx.Conn) error {
	return s.exec(ctx, conn, dropFailedIndex)
}

func (s step) pauses(ctx context.Context, conn *pgx.Conn) error {
	in, err := s.t.Inspect(ctx, conn)
	if err != nil || in.Pauses {
		return err
	}
	if err := s.exec(ctx, conn, sql.Pauses); err != nil {
		return err
	}
	return s.grantPauses(ctx, conn)
}

// grantPauses lets whoever may read the outbox, as a relay does, read its pauses: otherwise an update would stop relays.
func (s step) grantPauses(ctx context.Context, conn *pgx.Conn) error {
	const readers = `select case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
		from pg_catalog.pg_class c, lateral aclexplode(c.relacl) a
		where c.oid = $1::text::regclass and a.privilege_type = 'SELECT' and a.grantee <> c.relowner`
	rows, err := conn.Query(ctx, readers, s.t.String())
	if err != nil {
		return err
	}
	roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, role := range roles {
		if err := s.exec(ctx, conn, "grant select on {{pause_table}} to "+role); err != nil {
			return err
		}
	}
	return nil
}

const dropDueIndex = "drop index concurrently if exists {{schema}}.{{due_index}}"

func (s step) dropDueIndex(ctx context.Context, conn *pgx.Conn) error {
	return s.exec(ctx, conn, dropDueIndex)
}

func (s step) trigger(ctx context.Context, conn *pgx.Conn) error {
	in, err := s.t.Inspect(ctx, conn)
	if err != nil {
		return err
	}
	if !in.Settings { // what somebody chose stays
		if err := s.execLocking(ctx, conn, sql.Settings); err != nil {
			return err
		}
	}
	return s.wake(ctx, conn)
}

// wake makes the trigger, or makes it anew when it is not as this release makes it: of an older one, or edited. Whether it
// is enabled is the choice of a person and stays, which replacing it would forget.
func (s step) wake(ctx context.Context, conn *pgx.Conn) error {
	there, err := readTrigger(ctx, conn, s.t)
	if err != nil || there != nil && there.Fits(s.names) {
		return err
	}
	if there != nil { // look again under the lock: a person may have disabled it meanwhile
		if err = s.execLocking(ctx, conn, "lock table {{table}} in share row exclusive mode"); err != nil {
			return err
		}
		if there, err = readTrigger(ctx, conn, s.t); err != nil {
			return err
		}
	}
	statements := []string{sql.Triggers}
	if there != nil {
		if stays := map[string]string{"D": "disable", "R": "enable replica", "A": "enable always"}[there.Enabled]; stays != "" {
			statements = append(statements, "alter table {{table}} "+stays+" trigger {{trigger}}")
		}
	}
	return s.execLocking(ctx, conn, statements...)
}

// readTrigger gives nil when there is none.
func readTrigger(ctx context.Context, conn *pgx.Conn, t outbox.Table) (*sql.Trigger, error) {
	t = t.WithDefaults()
	var b pgx.Batch
	b.Queue("select pg_catalog.set_config('search_path', '', true)")
	b.Queue(sql.ReadTrigger, t.Schema, t.Name, t.Names()["trigger"])
	answers := conn.SendBatch(ctx, &b)
	defer answers.Close()
	if _, err := answers.Exec(); err != nil {
		return nil, err
	}
	rows, err := answers.Query()
	if err != nil {
		return nil, err
	}
	there, err := pgx.CollectOneRow(rows, pgx.RowToAddrOfStructByPos[sql.Trigger])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return there, err
}

func (s step) dropTrigger(ctx context.Context, conn *pgx.Conn) error {
	return s.execLocking(ctx, conn, "drop trigger if exists {{trigger}} on {{table}}; drop function if exists {{function}}()")
}

// execLocking runs statements that need a lock which inserts wait for. For the transaction only: an index that is built
// concurrently must be able to wait for old transactions.
func (s step) execLocking(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	limit := fmt.Sprintf("set local lock_timeout = %d", lockTimeout.Milliseconds())
	return s.exec(ctx, conn, append([]string{limit}, statements...)...)
}

func (s step) exec(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, sql.Fill(statement, s.names)); err != nil {
			return err
		}
	}
	return nil
}
