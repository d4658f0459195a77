package relay_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// The answer that was lost would have told of the row that falls due next.
func TestClaimOfTheListenersSessionThatFindsNothingAndFailsIsMadeOnThePool(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.exec(t, "alter table outbox disable trigger zz_outbox_wake")
	// Within the first claim on that session: a message for later, and no right to ask for the next due time.
	d.exec(t, `create function spoil() returns trigger language plpgsql as $$ begin
		if current_setting('application_name') = '`+notify.ListenSession+`' and not exists (select from outbox) then
			insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, programado_para)
				values (gen_random_uuid(), 'correo', 'ana@example.com', 'aviso', 'k', now() + interval '300 milliseconds');
			perform set_config('role', 'pg_signal_backend', false);
		end if;
		return null;
	end $$`)
	up, looked, arrived := make(chan error, 100), make(chan struct{}, 1000), make(chan struct{}, 10)
	told := false
	d.start(t, func(context.Context, transporte.Message) (string, error) { arrived <- struct{}{}; return "", nil }, relay.Options{PollInterval: 15 * time.Minute, Observer: relay.Observer{
		Listening: func(err error) { up <- err },
		Wake:      func(cause notify.Cause) { told = told || cause == notify.Notified },
		Turn: func(time.Duration) {
			if told {
				told = false
				looked <- struct{}{}
			}
		},
	}})
	if err := receive(t, up, "notifications"); err != nil {
		t.Fatal(err)
	}
	tell := func() {
		d.exec(t, "select pg_notify($1, '')", outbox.Table{}.Channel())
		// One look for each, since another would find the message. None when a wake-up of the start was still in the bell.
		waitfor.Within(time.Second, func() bool { return len(looked) > 0 })
		for len(looked) > 0 {
			<-looked
		}
	}
	for range 10 {
		tell() // after a few quick claims the relay looks for all that is due, and has no other reason to look again
	}
	d.exec(t, "create trigger spoil after update on outbox for each statement execute function spoil()")
	waitfor.True(t, "a claim on the session that listens", func() bool {
		tell()
		return d.count(t, "true") > 0
	})
	receive(t, arrived, "the message, once it is due")
}

func TestSendThatHangsKeepsNoOtherMessageInMemory(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.add(t, fields{"plantilla": "'hangs'", "programado_para": "now() - interval '1 hour'"})
	d.add(t, fields{"datos": "jsonb_build_object('text', repeat('x', 100000))"})
	data := make(chan weak.Pointer[byte], 1)
	hold := make(chan struct{})
	d.start(t, func(_ context.Context, m transporte.Message) (string, error) {
		if m.Template == "hangs" {
			<-hold
		} else {
			data <- weak.Make(&m.Data[0])
		}
		return "", nil
	}, relay.Options{})
	defer close(hold)
	payload := receive(t, data, "the other message")
	waitfor.True(t, "its payload is let go", func() bool {
		runtime.GC()
		return payload.Value() == nil
	})
}
