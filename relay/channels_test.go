package relay_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestChannelWhoseSendsHangHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	d := open(t)
	hung, finish := make(chan struct{}, 100), make(chan struct{})
	var atOnce, most atomic.Int32
	hangs := transporte.Func(func(context.Context, transporte.Message) (string, error) {
		most.Store(max(most.Load(), atOnce.Add(1)))
		defer atOnce.Add(-1)
		hung <- struct{}{}
		<-finish
		return "", nil
	})
	const n = 200
	d.addMany(t, n) // correo
	if _, err := d.Exec(t.Context(), "update outbox set canal = 'lento' where clave_idempotencia in (select clave_idempotencia from outbox order by creado_en, id limit 100)"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Run(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": transporte.Func(sent), "lento": hangs},
			relay.Options{Log: silent, Timeout: time.Minute, Channels: map[string]relay.ChannelOptions{"lento": {Concurrency: 2}}})
	}()
	eventually(t, "the other channel is sent", func() bool { return d.count(t, "canal = 'correo' and estado = 'enviado'") == 100 })
	if got := most.Load(); got > 2 {
		t.Errorf("%d sends of the channel were under way at once, want 2 at most", got)
	}
	d.add(t, fields{"canal": "'correo'"})
	eventually(t, "a message that comes later is sent", func() bool { return d.count(t, "canal = 'correo' and estado = 'enviado'") == 101 })
	stop()
	close(finish)
	if err := receive(t, ended, "the end of Run"); err != nil {
		t.Error(err)
	}
}

func TestChannelHasItsOwnBackoffAndAttempts(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.add(t, fields{"canal": "'correo'", "intentos": "4", "max_intentos": "5"})
	webhook := outbox.WebhookBackoff()
	recorded := make(chan relay.Recorded, 1)
	fails := transporte.Func(func(context.Context, transporte.Message) (string, error) { return "", errors.New("no") })
	_, err := relay.RunOnce(t.Context(), d.Pool, outbox.Table{}, relay.Senders{"correo": fails}, relay.Options{
		Log:      silent,
		Channels: map[string]relay.ChannelOptions{"correo": {Backoff: &webhook, MaxAttempts: 10}},
		Observer: relay.Observer{Recorded: func(r relay.Recorded) { recorded <- r }},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := receive(t, recorded, "the outcome")
	if r.Outcome != relay.Retried || r.RetryIn < 4*time.Hour || r.RetryIn > 6*time.Hour {
		t.Errorf("got %s in %v after the fifth of ten attempts, want retried in about 5h", r.Outcome, r.RetryIn)
	}
	d.wantCount(t, "estado = 'pendiente' and max_intentos = 10", 1)
}

func TestOptionsOfAChannelAreChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]relay.ChannelOptions{
		"concurrency": {Concurrency: -1}, "short timeout": {Timeout: time.Millisecond}, "long timeout": {Timeout: 6 * time.Minute},
		"attempts": {MaxAttempts: -1}, "backoff": {Backoff: &outbox.Backoff{Schedule: []time.Duration{-1}}},
	} {
		err := relay.Options{Channels: map[string]relay.ChannelOptions{"correo": c}}.Validate()
		if !errors.Is(err, outbox.ErrInvalidOptions) {
			t.Errorf("%s: got %v, want ErrInvalidOptions", name, err)
		}
	}
}
