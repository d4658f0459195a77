package tests

import (
	"context"
	databasesql "database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// insertOne takes an id; insertSelect some.
const (
	insertOne = `insert into OUTBOX (id, organizacion_id, canal, destino, plantilla, clave_idempotencia)
		values ($1::uuid, gen_random_uuid(), 'webhook', 'd', 'p', $1)`
	insertSelect = `insert into OUTBOX (id, organizacion_id, canal, destino, plantilla, clave_idempotencia)
		select id::uuid, gen_random_uuid(), 'webhook', 'd', 'p', id from unnest($1::text[]) id`
)

func (b *box) fillIn(statement string) string {
	return strings.ReplaceAll(statement, "OUTBOX", b.table.String())
}

// commit runs do in a transaction of pgx.
func (b *box) commit(t *testing.T, do func(tx pgx.Tx) error) {
	t.Helper()
	if err := pgx.BeginFunc(t.Context(), b.pool, do); err != nil {
		t.Fatal(err)
	}
}

func (b *box) commitSQL(t *testing.T, do func(tx *databasesql.Tx) error) {
	t.Helper()
	db := stdlib.OpenDBFromPool(b.pool)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(do(tx), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

func ids(n int) (ids []string) {
	for range n {
		ids = append(ids, uuid.NewString())
	}
	return ids
}

func TestEveryKindOfInsertWakesASleepingRelay(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
	for _, test := range []struct {
		name   string
		commit func(ids []string) []string // commits the messages, and gives the ids that are to be sent
	}{
		{"plain SQL without a transaction block", func(ids []string) []string {
			b.exec(t, insertOne, ids[0])
			return ids[:1]
		}},
		{"Enqueue in a pgx.Tx", func([]string) []string { return []string{b.enqueue(t, message())} }},
		{"EnqueueMany in a pgx.Tx", func([]string) (sent []string) {
			b.commit(t, func(tx pgx.Tx) error {
				answers, err := b.table.EnqueueMany(t.Context(), tx, []outbox.Message{message(), message(), message()})
				for _, a := range answers {
					sent = append(sent, a.ID)
				}
				return err
			})
			return sent
		}},
		{"EnqueueSQL in a *sql.Tx", func([]string) (sent []string) {
			b.commitSQL(t, func(tx *databasesql.Tx) error {
				e, err := b.table.EnqueueSQL(t.Context(), tx, message())
				sent = append(sent, e.ID)
				return err
			})
			return sent
		}},
		{"insert select", func(ids []string) []string {
			b.exec(t, insertSelect, ids)
			return ids
		}},
		{"COPY", func(ids []string) []string {
			var rows [][]any
			for _, id := range ids {
				rows = append(rows, []any{id, uuid.NewString(), "webhook", "d", "p", id})
			}
			into := pgx.Identifier{"public", "outbox"}
			columns := []string{"id", "organizacion_id", "canal", "destino", "plantilla", "clave_idempotencia"}
			if _, err := b.pool.CopyFrom(t.Context(), into, columns, pgx.CopyFromRows(rows)); err != nil {
				t.Fatal(err)
			}
			return ids
		}},
		{"many statements in one transaction", func(ids []string) []string {
			b.commit(t, func(tx pgx.Tx) (err error) {
				for _, id := range ids {
					_, e := tx.Exec(t.Context(), b.fillIn(insertOne), id)
					err = errors.Join(err, e)
				}
				return err
			})
			return ids
		}},
		{"a savepoint that is released", func([]string) (sent []string) {
			b.commit(t, func(tx pgx.Tx) error {
				return pgx.BeginFunc(t.Context(), tx, func(savepoint pgx.Tx) error {
					e, err := b.table.Enqueue(t.Context(), savepoint, message())
					sent = append(sent, e.ID)
					return err
				})
			})
			return sent
		}},
		{"beside a savepoint that is rolled back", func(ids []string) []string {
			b.commit(t, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), b.fillIn(insertOne), ids[0])
				savepoint, e := tx.Begin(t.Context())
				if e != nil {
					return e
				}
				_, e = savepoint.Exec(t.Context(), b.fillIn(insertOne), ids[1])
				return errors.Join(err, e, savepoint.Rollback(t.Context()))
			})
			return ids[:1]
		}},
		{"a batch half of which is there already", func(ids []string) []string {
			b.exec(t, b.fillIn(insertSelect)+" on conflict do nothing", append(ids, ids...))
			return ids
		}},
		{"a message of 5 MB", func([]string) []string {
			m := message()
			m.Data = map[string]string{"text": strings.Repeat("x", 5<<20)}
			return []string{b.enqueue(t, m)}
		}},
	} {
		b.wakes(t, r, test.name, func() []string { return test.commit(ids(3)) })
	}
}

func TestCommitIsAnnouncedOnceAndOnlyWhenItBringsWork(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	known := b.enqueue(t, message())
	duplicate := b.fillIn(insertOne) + " on conflict do nothing"
	for _, test := range []struct {
		name string
		do   func(tx pgx.Tx) error
		want int
	}{
		{"no rows: insert select", func(tx pgx.Tx) error { return b.in(tx, insertSelect, []string{}) }, 0},
		{"no rows: on conflict do nothing", func(tx pgx.Tx) error { return b.in(tx, duplicate, known) }, 0},
		{"the same key three times", func(tx pgx.Tx) error {
			m := message()
			for range 3 {
				if _, err := b.table.Enqueue(t.Context(), tx, m); err != nil {
					return err
				}
			}
			return nil
		}, 1},
		{"no rows: COPY", func(tx pgx.Tx) error {
			_, err := tx.CopyFrom(t.Context(), pgx.Identifier{"public", "outbox"}, []string{"id"}, pgx.CopyFromRows(nil))
			return err
		}, 0},
		{"an update", func(tx pgx.Tx) error { return b.in(tx, "update OUTBOX set destino = 'e' where id = $1::uuid", known) }, 0},
		{"a thousand rows in one statement", func(tx pgx.Tx) error { return b.in(tx, insertSelect, ids(1000)) }, 1},
		{"a hundred statements", func(tx pgx.Tx) (err error) {
			for _, id := range ids(100) {
				err = errors.Join(err, b.in(tx, insertOne, id))
			}
			return err
		}, 1},
		{"a savepoint that is rolled back", func(tx pgx.Tx) error {
			savepoint, err := tx.Begin(t.Context())
			if err != nil {
				return err
			}
			return errors.Join(b.in(savepoint, insertOne, uuid.NewString()), savepoint.Rollback(t.Context()))
		}, 0},
		{"a transaction that is rolled back", func(tx pgx.Tx) error {
			return errors.Join(b.in(tx, insertOne, uuid.NewString()), errRollBack)
		}, 0},
		{"a row that is due in twenty minutes", func(tx pgx.Tx) error {
			m := message()
			m.ScheduledFor = time.Now().Add(20 * time.Minute)
			_, err := b.table.Enqueue(t.Context(), tx, m)
			return err
		}, 0},
		{"a row that is due in five minutes", func(tx pgx.Tx) error {
			m := message()
			m.ScheduledFor = time.Now().Add(5 * time.Minute)
			_, err := b.table.Enqueue(t.Context(), tx, m)
			return err
		}, 1},
		{"a row that is finished already", func(tx pgx.Tx) error {
			return b.in(tx, strings.ReplaceAll(strings.ReplaceAll(insertOne, "destino,", "destino, estado,"), "'d',", "'d', 'enviado',"), uuid.NewString())
		}, 0},
	} {
		got := announced(t, b, func() {
			if err := pgx.BeginFunc(t.Context(), b.pool, test.do); err != nil && !errors.Is(err, errRollBack) {
				t.Fatalf("%s: %v", test.name, err)
			}
		})
		if len(got) != test.want {
			t.Errorf("%s: got notifications %q, want %d", test.name, got, test.want)
		}
	}
}

var errRollBack = errors.New("roll back")

func (b *box) in(tx pgx.Tx, statement string, args ...any) error {
	_, err := tx.Exec(context.Background(), b.fillIn(statement), args...)
	return err
}

// announced gives the payloads that do sends on b's channel, and those on the channels of others by name.
func announced(t *testing.T, b *box, do func(), others ...*box) (payloads []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, box := range append(others, b) {
		if _, err := conn.Exec(t.Context(), "listen "+box.table.Channel()); err != nil {
			t.Fatal(err)
		}
	}
	do()
	if _, err := b.pool.Exec(t.Context(), "select pg_notify($1, 'end')", b.table.Channel()); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := conn.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case n.Payload == "end":
			return payloads
		case n.Channel != b.table.Channel():
			payloads = append(payloads, "on "+n.Channel)
		default:
			payloads = append(payloads, n.Payload)
		}
	}
}

func TestOutboxesOfOneDatabaseDoNotWakeEachOther(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	one := newBoxIn(t, dsn, outbox.Table{})
	others := []*box{
		newBoxIn(t, dsn, outbox.Table{Schema: "otra"}),
		newBoxIn(t, dsn, outbox.Table{Name: "outbox2"}),
		newBoxIn(t, dsn, outbox.Table{Name: "Outbox"}),
	}
	got := announced(t, one, func() { one.enqueue(t, message()) }, others...)
	if len(got) != 1 || strings.HasPrefix(got[0], "on ") {
		t.Errorf("got notifications %q, want one, on the channel of the outbox that was written", got)
	}

	busy, idle := one.sleeping(t, one.pool, newReceiver(), relay.Options{}), others[1].sleeping(t, one.pool, newReceiver(), relay.Options{})
	for range 20 {
		busy.awaitSent(t, one.enqueue(t, message()))
	}
	idle.awaitSent(t, others[1].enqueue(t, message()))
	woken := slices.DeleteFunc(all[woken](idle.journal, 0), func(w woken) bool { return notify.Cause(w) != notify.Notified })
	if len(woken) > 2 { // its own two messages
		t.Errorf("20 messages in another outbox: got %d wake-ups by notifications, want 2 at most", len(woken))
	}
}

func TestHostileNamesWakeTheirRelay(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ñandú", 10) // 70 bytes: cut below
	for _, table := range []outbox.Table{
		{Schema: "Turnos Médicos", Name: "Salida"},
		{Schema: `a"b`, Name: `it's.a "table"`, TenantColumn: "Clínica Id"},
		{Schema: "select", Name: "table", TenantColumn: "user"},
		{Schema: long[:60], Name: "x" + long[:59], TenantColumn: "y" + long[:59]},
		{Schema: "{{table}}", Name: "$1::text", TenantColumn: "$outbox$"},
	} {
		t.Run(table.String(), func(t *testing.T) {
			t.Parallel()
			b := newBoxIn(t, pgtest.Database(t), table)
			r := b.sleeping(t, b.pool, newReceiver(), relay.Options{})
			b.awaitNotified(t, r)
		})
	}
}
