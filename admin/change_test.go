package admin_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func redrive(t *testing.T, b box, f admin.Filter, opts admin.ChangeOptions) admin.Result {
	t.Helper()
	r, err := admin.Redrive(t.Context(), b, b.table, f, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRedriveMakesWhatFailedPendingWithAllItsAttemptsAndTellsTheRelays(t *testing.T) {
	t.Parallel()
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, table)
			b.add(t, 450, outbox.Failed, "correo", "now() - i * interval '1 second'")
			b.add(t, 5, outbox.Discarded, "whatsapp", "now() - interval '1 day'")
			b.add(t, 7, outbox.Sent, "correo", "now()")
			b.add(t, 3, outbox.Pending, "correo", "now()")
			b.exec(t, "create table before as select * from {{table}}")

			dry := redrive(t, b, admin.Filter{}, admin.ChangeOptions{DryRun: true})
			if dry.Changed != 0 || dry.Matched() != 455 || b.value(t, "select count(*) from (table {{table}} except table before) x") != "0" {
				t.Errorf("dry run: got %+v, want 455 that fit and nothing changed", dry)
			}
			want := []admin.Group{{outbox.Failed, "correo", "red", "503", 450}, {outbox.Discarded, "whatsapp", "red", "503", 5}}
			if !slices.Equal(dry.Groups, want) {
				t.Errorf("got groups %+v, want %+v", dry.Groups, want)
			}

			heard := b.listen(t)
			var steps []int
			r := redrive(t, b, admin.Filter{}, admin.ChangeOptions{Progress: func(r admin.Result) { steps = append(steps, r.Changed) }})
			if r.Changed != 455 || !slices.Equal(r.Groups, want) || r.Leased+r.Held != 0 {
				t.Errorf("got %+v, want 455 changed", r)
			}
			if !slices.IsSorted(steps) || len(steps) < 3 || steps[len(steps)-1] != 455 {
				t.Errorf("got progress %v, want a step for every 200", steps)
			}
			for range 3 {
				heard()
			}
			if got := b.value(t, `select count(*) from {{table}} where estado = 'pendiente' and intentos = 0 and bloqueado_hasta is null and {{due}} <= now()
				and id in (select id from before where estado in ('fallido', 'descartado'))`); got != "455" {
				t.Errorf("%s messages are due with all their attempts, want 455", got)
			}
			if got := b.value(t, "select count(*) from (table before except table {{table}}) x where estado in ('enviado', 'pendiente')"); got != "0" {
				t.Errorf("%s other messages have changed, want none", got)
			}
			if again := redrive(t, b, admin.Filter{}, admin.ChangeOptions{}); again.Changed+again.Matched() != 0 {
				t.Errorf("a second time: got %+v, want nothing left", again)
			}
		})
	}
}

// listen gives a function that waits for a help from others on the outbox's channel.
func (b box) listen(t *testing.T) (next func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "listen "+b.table.Channel()); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if n.Payload == "help" {
				return
			}
		}
	}
}

func TestRedriveLeavesWhatARelayOrSomebodyElseHolds(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 4, outbox.Processing, "correo", "now() - i * interval '1 second'")
	b.add(t, 2, outbox.Failed, "correo", "now() - i * interval '1 second'")
	b.add(t, 1, outbox.Sent, "correo", "now()")
	b.exec(t, "update {{table}} set bloqueado_hasta = now() - interval '1 second' where id in (select id from {{table}} where estado = 'procesando' limit 1)")
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "select from outbox where id in (select id from outbox where estado = 'fallido' limit 1) for update"); err != nil {
		t.Fatal(err)
	}
	ids := strings.Split(b.value(t, "select string_agg(id::text, ',') from {{table}}"), ",")
	r := redrive(t, b, admin.Filter{IDs: ids}, admin.ChangeOptions{})
	if r.Changed != 2 || r.Leased != 3 || r.Held != 1 {
		t.Errorf("got %+v, want 2 changed, 3 under a lease, 1 held by somebody", r)
	}
	if got := b.value(t, "select count(*) from {{table}} where estado = 'procesando' and bloqueado_hasta > now() and intentos = 5"); got != "3" {
		t.Errorf("got %s messages under their lease as before, want 3", got)
	}
	if r := redrive(t, b, admin.Filter{States: []outbox.State{outbox.Sent}}, admin.ChangeOptions{}); r.Changed != 1 {
		t.Errorf("enviado, by name: got %+v, want 1", r)
	}
}

func TestRedriveOfAMessageThatWaitsForItsRetrySendsItNowAndNeverBeforeItsTime(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 2, outbox.Pending, "correo", "now()")
	b.exec(t, "update {{table}} set proximo_intento_en = now() + interval '1 hour', intentos = 4, clave_idempotencia = 'retry' where id = (select min(id::text)::uuid from {{table}})")
	b.exec(t, "update {{table}} set programado_para = now() + interval '1 day' where clave_idempotencia <> 'retry'")
	r := redrive(t, b, admin.Filter{States: []outbox.State{outbox.Pending}}, admin.ChangeOptions{})
	if r.Changed != 2 {
		t.Errorf("got %+v, want 2", r)
	}
	if got := b.value(t, "select string_agg(concat_ws(' ', clave_idempotencia = 'retry', {{due}} <= now(), intentos), ', ' order by clave_idempotencia = 'retry') from {{table}}"); got != "f f 0, t t 0" {
		t.Errorf("got %s, want the retry due and the scheduled message not", got)
	}
}

// What is sent again may fail again before the end, and must not be taken for what failed before.
func TestRedriveDoesNotRunAfterItself(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 500, outbox.Failed, "correo", "now() - i * interval '1 second'")
	failAgain := func(admin.Result) {
		b.exec(t, "update {{table}} set estado = 'fallido', intentos = 5, actualizado_en = clock_timestamp() where estado = 'pendiente'")
	}
	for _, states := range [][]outbox.State{{outbox.Failed}, {outbox.Failed, outbox.Pending, outbox.Sent}} { // by the index, by the blocks
		if r := redrive(t, b, admin.Filter{States: states}, admin.ChangeOptions{Progress: failAgain}); r.Changed != 500 {
			t.Errorf("%v: got %d changed, want each of 500 once", states, r.Changed)
		}
	}
}

func TestRedriveKeepsToItsRate(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 60, outbox.Failed, "correo", "now()")
	begun := time.Now()
	if r := redrive(t, b, admin.Filter{}, admin.ChangeOptions{Rate: 40}); r.Changed != 60 {
		t.Errorf("got %d changed, want 60", r.Changed)
	}
	if took := time.Since(begun); took < time.Second { // the last 20 of 60 at 40 a second go after one second
		t.Errorf("got 60 messages in %v at 40 a second, want at least 1 s", took)
	}
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := admin.Redrive(t.Context(), b, b.table, admin.Filter{}, admin.ChangeOptions{Rate: rate})
		refused(t, err, outbox.ErrInvalidOptions, "a rate must be above 0")
	}
}

func TestRedriveThatIsCutKeepsItsStepsAndCountsThem(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 500, outbox.Failed, "correo", "now() - i * interval '1 second'")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := admin.Redrive(ctx, b, b.table, admin.Filter{}, admin.ChangeOptions{Progress: func(admin.Result) { cancel() }})
	if !errors.Is(err, context.Canceled) || r.Changed != 200 {
		t.Errorf("got %d changed, %v, want 200 and that it was cancelled", r.Changed, err)
	}
	if r := redrive(t, b, admin.Filter{}, admin.ChangeOptions{}); r.Changed != 300 {
		t.Errorf("got %d changed by the next, want the 300 that were left", r.Changed)
	}
}

func TestCancelDiscardsWhatWaitsAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, table)
			for _, state := range admin.States() {
				b.add(t, 2, state, "correo", "now()")
			}
			b.add(t, 1, outbox.Pending, "whatsapp", "now()")
			b.exec(t, "create table before as select * from {{table}}")
			r, err := admin.Cancel(t.Context(), b, b.table, admin.Filter{Channel: "correo"}, "", "", admin.ChangeOptions{})
			if err != nil || r.Changed != 2 || r.Leased != 2 {
				t.Errorf("got %+v, %v, want 2 cancelled and 2 under a lease", r, err)
			}
			if got := b.value(t, "select count(*) from (table {{table}} except table before) x where estado = 'descartado' and ultimo_error_categoria = 'cancelado' and ultimo_error_codigo = 'operador'"); got != "2" {
				t.Errorf("got %s discarded by an operator, want 2", got)
			}
			if got := b.value(t, "select count(*) from (table {{table}} except table before) x"); got != "2" {
				t.Errorf("%s rows have changed, want 2", got)
			}
			r, err = admin.Cancel(t.Context(), b, b.table, admin.Filter{}, "duplicado", "a\nb", admin.ChangeOptions{})
			if err != nil || r.Changed != 1 || b.value(t, "select count(*) from {{table}} where ultimo_error_categoria = 'duplicado' and ultimo_error_codigo = 'a_b'") != "1" {
				t.Errorf("got %+v, %v, want 1 with the category and the code made fit", r, err)
			}
			_, err = admin.Cancel(t.Context(), b, b.table, admin.Filter{States: []outbox.State{outbox.Failed}}, "", "", admin.ChangeOptions{})
			refused(t, err, outbox.ErrInvalidOptions, "only messages that wait")
		})
	}
}
