package claim_test

import (
	"context"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestSessionHandsOutRowsOnceTheirClaimIsCommitted(t *testing.T) {
	t.Parallel()
	f := open(t)
	row := f.add(t, nil)
	f.add(t, fields{"programado_para": "now() + interval '1 hour'"})
	begun := 0
	b, err := f.open(t, false).Take(t.Context(), claim.Ask{Limit: 10, Lease: 24 * time.Hour}, func(b *claim.Batch) {
		begun++
		f.wantRow(t, row, "estado = 'procesando' and intentos = 1") // seen by another session
		if len(b.Rows) != 1 || id(b.Rows[0]) != row {
			t.Errorf("got %v handed out, want %s", ids(b.Rows), row)
		}
	})
	if err != nil || begun != 1 {
		t.Fatalf("got %d calls and %v, want 1 and no error", begun, err)
	}
	if in := b.Next.Sub(b.Now); in > time.Hour || in < 59*time.Minute {
		t.Errorf("the next row is due in %v, want an hour", in)
	}
}

func TestSessionClosesRowsWhoseAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	f := open(t)
	row := f.add(t, fields{"intentos": "5", "estado": "'procesando'", "bloqueado_hasta": "now() - interval '1 second'"})
	f.session = f.open(t, false)
	b := f.take(t, 10)
	if len(b.Rows) != 0 || len(b.Closed) != 1 || b.Closed[0].Code != "lease_agotado" || b.Closed[0].Attempts != 5 {
		t.Errorf("got %+v and %+v, want one row closed for its lease", b.Rows, b.Closed)
	}
	f.wantRow(t, row, "estado = 'fallido'")
}

// Who has seen everything in a snapshot need not look for what is announced of it.
func TestSessionThatTakesNothingTellsWhatItSawUnlessSomethingIsDue(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.session = f.open(t, false)
	b := f.take(t, 10)
	if b.Now.IsZero() || b.Snapshot == "" || !b.Next.IsZero() {
		t.Errorf("empty table: got %v, %q, next %v, want the time, a snapshot and no next", b.Now, b.Snapshot, b.Next)
	}
	row := f.add(t, fields{"programado_para": "now() - interval '1 hour'"})
	letGo := f.hold(t, "select from outbox for update")
	b = f.take(t, 10)
	if len(b.Rows) != 0 || b.Snapshot != "" || b.Next.IsZero() || b.Next.After(b.Now) {
		t.Errorf("a row that is due and held: got %d rows, %q, next %v, want none, no snapshot and its due time", len(b.Rows), b.Snapshot, b.Next)
	}
	letGo()
	b = f.take(t, 10)
	if len(b.Rows) != 1 || id(b.Rows[0]) != row || b.Snapshot == "" || !b.Now.Before(b.Rows[0].Lease) {
		t.Errorf("got %v, %q, %v, want the row, a snapshot and the time", ids(b.Rows), b.Snapshot, b.Now)
	}
}

// A claim whose answer nobody waits for would keep its rows until their lease ends.
func TestServerEndsTheClaimOfASessionThatTakesTooLong(t *testing.T) {
	t.Parallel()
	f := open(t)
	row := f.add(t, nil)
	session := f.openLimited(t, false, time.Second)
	letGo := f.hold(t, "lock table outbox in access exclusive mode")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := session.Take(ctx, claim.Ask{Limit: 10, Lease: lease}, func(*claim.Batch) { t.Error("got a batch") })
	if got := outbox.SQLState(err); got != "57014" {
		t.Errorf("got %v, want the server to cancel it (57014)", err)
	}
	letGo()
	f.wantRow(t, row, "estado = 'pendiente' and intentos = 0")
	if _, err := session.Conn.Exec(t.Context(), "set statement_timeout = '5s'"); err != nil {
		t.Fatal(err)
	}
	f.session = session
	if got := f.takeOne(t); id(got) != row {
		t.Errorf("got %s, want %s: the session is usable", id(got), row)
	}
}

func TestSessionWaitsForTheDiskOnlyWhenItIsDurable(t *testing.T) {
	t.Parallel()
	f := open(t)
	for durable, want := range map[bool]string{false: "off", true: "on"} {
		var got string
		if err := f.open(t, durable).Conn.QueryRow(t.Context(), "show synchronous_commit").Scan(&got); err != nil || got != want {
			t.Errorf("durable %v: got synchronous_commit %s, %v, want %s", durable, got, err, want)
		}
	}
}

// Rows of different tables may have the same place.
func TestClaimTouchesNoRowOfAnInheritingTableInPassing(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.exec(t, "create table outbox_old () inherits (outbox)")
	due := f.add(t, nil)
	f.exec(t, `insert into outbox_old select (o).* from (select o from only outbox o) o;
		update outbox_old set id = gen_random_uuid(), estado = 'enviado'`)
	f.exec(t, "vacuum full outbox_old")
	if same := count(t, f, "select count(*) from only outbox o join only outbox_old c on o.ctid = c.ctid"); same != 1 {
		t.Fatalf("got %d rows in the same place, want one: this proves nothing", same)
	}
	if got := f.takeOne(t); id(got) != due {
		t.Errorf("got %s, want %s", id(got), due)
	}
	if sent := count(t, f, "select count(*) from outbox_old where estado = 'enviado'"); sent != 1 {
		t.Error("a row that was sent has been taken again")
	}
}

func count(t *testing.T, f fixture, query string) (n int) {
	t.Helper()
	if err := f.pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Postgres and people know dates without a number: what is due since ever is due.
func TestSessionThatTakesNothingTellsOfARowThatIsDueSinceEver(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.session = f.open(t, false)
	f.add(t, fields{"programado_para": "'-infinity'"})
	f.hold(t, "select from outbox for update")
	if b := f.take(t, 10); b.Snapshot != "" || b.Next.IsZero() || b.Next.After(b.Now) {
		t.Errorf("got %q, next %v, want no snapshot and a next look at once", b.Snapshot, b.Next)
	}
}
