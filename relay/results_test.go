package relay_test

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestAResultThatTheTableRefusesDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"a check": "alter table outbox add check (id_externo <> 'ext-bad')",
		"a trigger": `create function refuse() returns trigger language plpgsql as
			$$ begin if new.id_externo = 'ext-bad' then raise 'no'; end if; return new; end $$;
			create trigger refuse before update on outbox for each row execute function refuse()`,
		"a trigger with a code of its own": `create function refuse() returns trigger language plpgsql as
			$$ begin if new.id_externo = 'ext-bad' then raise 'no' using errcode = 'AP001'; end if; return new; end $$;
			create trigger refuse before update on outbox for each row execute function refuse()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.exec(t, refusal)
			d.addMany(t, 30)
			bad := d.add(t, fields{"plantilla": "'bad'", "programado_para": "now() - interval '1 minute'"})
			errored := make(chan relay.Recorded, 100)
			d.start(t, func(_ context.Context, m transporte.Message) (string, error) { return "ext-" + m.Template, nil },
				relay.Options{Observer: relay.Observer{Recorded: func(r relay.Recorded) {
					if r.Outcome == relay.Errored {
						errored <- r
					}
				}}})
			if r := receive(t, errored, "the end of the refused result"); r.ID != bad {
				t.Errorf("the result of %s was given up, want that of %s", r.ID, bad)
			}
			waitfor.True(t, "the others are recorded", func() bool { return d.count(t, "estado = 'enviado'") == 30 })
			d.addMany(t, 1)
			waitfor.True(t, "a later one is sent", func() bool { return d.count(t, "estado = 'enviado'") == 31 })
			d.wantRow(t, bad, "estado = 'procesando' and intentos = 1")
		})
	}
}

func TestARowThatIsDeletedOrCancelledWhileItIsSentCountsAsLost(t *testing.T) {
	t.Parallel()
	d := open(t)
	outcomes := make(chan relay.Recorded, 10)
	statements := map[string]string{
		"deleted":   "delete from outbox where id = $1::uuid",
		"cancelled": "update outbox set estado = 'descartado' where id = $1::uuid",
	}
	d.start(t, func(ctx context.Context, m transporte.Message) (string, error) {
		if statement := statements[m.Template]; statement != "" {
			if _, err := d.Exec(ctx, statement, m.ID); err != nil {
				return "", err
			}
		}
		return "", nil
	}, relay.Options{Observer: relay.Observer{Recorded: func(r relay.Recorded) { outcomes <- r }}})
	for template, want := range map[string]relay.Outcome{"deleted": relay.Lost, "cancelled": relay.Lost, "kept": relay.Sent} {
		id := d.add(t, fields{"plantilla": "'" + template + "'"})
		if got := receive(t, outcomes, "the outcome"); got.ID != id || got.Outcome != want {
			t.Errorf("%s: got %s of %s, want %s of %s", template, got.Outcome, got.ID, want, id)
		}
	}
	d.wantCount(t, "estado = 'descartado' and plantilla = 'cancelled' and enviado_en is null", 1)
}

func TestARowThatAnotherTransactionHoldsDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	d := open(t)
	held := d.add(t, fields{"plantilla": "'held'", "programado_para": "now() - interval '1 minute'"})
	d.addMany(t, 30)
	tx, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	var received receiver
	stop := d.start(t, func(ctx context.Context, m transporte.Message) (string, error) {
		if m.ID == held { // a person looks at it, in a transaction that stays open
			if _, err := tx.Exec(ctx, "select from outbox where id = $1::uuid for update", held); err != nil {
				return "", err
			}
		}
		return received.Send(ctx, m)
	}, relay.Options{})
	waitfor.True(t, "the others are recorded", func() bool { return d.count(t, "estado = 'enviado'") == 30 })
	d.addMany(t, 30)
	waitfor.True(t, "later ones are sent", func() bool { return d.count(t, "estado = 'enviado'") == 60 })
	d.wantRow(t, held, "estado = 'procesando'")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitfor.True(t, "its result is written", func() bool { return d.count(t, "estado = 'enviado'") == 61 })
	stop()
	received.wantEachOnce(t, 61)
}

func TestARowThatCannotBeGivenBackDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.addMany(t, 4)
	bad := d.add(t, fields{"plantilla": "'bad'"})
	d.exec(t, "alter table outbox add check (plantilla <> 'bad' or proximo_intento_en is null)")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	summary, err := relay.RunOnce(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": transporte.Func(sent)},
		relay.Options{Log: silent, Observer: relay.Observer{Claim: func(relay.Claim) { cancel() }}})
	if err != nil || summary.Released != 4 || summary.LastError != "23514" {
		t.Errorf("got %+v, %v, want 4 released and one that the database refused with 23514", summary, err)
	}
	d.wantRow(t, bad, "estado = 'procesando' and intentos = 1")
	d.wantCount(t, "estado = 'pendiente' and intentos = 0", 4)
}

func TestRunOnceWritesItsResultsAlthoughItsSessionsWereCut(t *testing.T) {
	t.Parallel()
	d := open(t)
	const n = 3
	d.addMany(t, n)
	person, err := pgx.ConnectConfig(t.Context(), d.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close(context.Background())
	var sending atomic.Int32
	cut := make(chan struct{})
	summary := d.runOnce(t, func(ctx context.Context, _ transporte.Message) (_ string, err error) {
		if sending.Add(1) == n { // no result is being written: the others wait for this
			_, err = person.Exec(ctx, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
			close(cut)
		}
		<-cut
		return "", err
	}, relay.Options{Concurrency: n})
	if summary.Sent != n {
		t.Errorf("got %+v, want %d sent", summary, n)
	}
	d.wantCount(t, "estado = 'enviado'", n)
}

func TestRunOnceCountsAWriteThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.exec(t, "alter table outbox add check (id_externo <> 'ext-bad')")
	for _, template := range []string{"good", "bad", "good"} {
		d.add(t, fields{"plantilla": "'" + template + "'"})
	}
	summary := d.runOnce(t, func(_ context.Context, m transporte.Message) (string, error) { return "ext-" + m.Template, nil }, relay.Options{})
	if summary.Errors == 0 || summary.LastError != "23514" || summary.Sent != 2 {
		t.Errorf("got %+v, want 2 sent and errors with 23514", summary)
	}
	summary.Errors, summary.LastError = 0, ""
	if want := (relay.Summary{Claimed: 3, Sent: 2}); !reflect.DeepEqual(withoutWarnings(summary), want) {
		t.Errorf("got %+v, want %+v besides", summary, want)
	}
	d.wantCount(t, "plantilla = 'bad' and estado = 'procesando' and intentos = 1", 1)
}
