package relay_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
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
	waitfor.True(t, "the other channel is sent", func() bool { return d.count(t, "canal = 'correo' and estado = 'enviado'") == 100 })
	if got := most.Load(); got > 2 {
		t.Errorf("%d sends of the channel were under way at once, want 2 at most", got)
	}
	d.add(t, fields{"canal": "'correo'"})
	waitfor.True(t, "a message that comes later is sent", func() bool { return d.count(t, "canal = 'correo' and estado = 'enviado'") == 101 })
	stop()
	close(finish)
	if err := receive(t, ended, "the end of Run"); err != nil {
		t.Error(err)
	}
}

// A provider that hangs for hours leaves a backlog, older than what the other channels have. Passing over it in every claim
// costs them more the longer it hangs.
func TestBacklogOfAChannelThatHangsIsNotReadByEveryClaim(t *testing.T) {
	t.Parallel()
	d := open(t)
	const hung, n, batch = 4000, 2000, 20
	d.addMany(t, hung)
	d.exec(t, "update outbox set canal = 'lento', programado_para = now() - interval '1 hour'")
	d.addMany(t, n)
	config := d.Config().Copy()
	config.ConnConfig.RuntimeParams["application_name"] = "relay"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	var claims atomic.Int64
	finish := make(chan struct{})
	hangs := transporte.Func(func(context.Context, transporte.Message) (string, error) { <-finish; return "", nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Run(ctx, pool, outbox.Table{}, relay.Senders{"correo": transporte.Func(sent), "lento": hangs}, relay.Options{
			Log: silent, Batch: batch, Channels: map[string]relay.ChannelOptions{"correo": {Concurrency: 20}},
			Observer: relay.Observer{Claim: func(relay.Claim) { claims.Add(1) }},
		})
	}()
	waitfor.True(t, "the other channel is sent", func() bool { return d.count(t, "canal = 'correo' and estado = 'enviado'") == n })
	made := claims.Load()
	stop()
	close(finish)
	if err := receive(t, ended, "the end of Run"); err != nil {
		t.Error(err)
	}
	pool.Close()
	waitfor.True(t, "its sessions have told what they read", func() bool {
		var open int
		err := d.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = 'relay' and datname = current_database()").Scan(&open)
		return err == nil && open == 0
	})
	var read int64
	err = d.QueryRow(t.Context(), "select idx_tup_read from pg_stat_user_indexes where indexrelid = $1::regclass", outbox.Table{}.Names()["due_index"]).Scan(&read)
	if err != nil {
		t.Fatal(err)
	}
	if made < n/batch || read < n || read > made*hung/2 {
		t.Errorf("%d claims read %d entries of the index, want fewer than half of the backlog each time", made, read)
	}
}

func TestBacklogOfAChannelThatRecoversIsSentWhileOthersAreBusy(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.addMany(t, 1000)
	d.exec(t, "update outbox set canal = 'lento', programado_para = now() - interval '1 hour'")
	d.addMany(t, 1000)
	finish := make(chan struct{})
	recovers := transporte.Func(func(context.Context, transporte.Message) (string, error) { <-finish; return "", nil })
	var left atomic.Int32
	left.Store(1000)
	// Its backlog never ends: each message that it sends is followed by another.
	busy := transporte.Func(func(context.Context, transporte.Message) (string, error) {
		if left.Add(-1) == 500 {
			close(finish)
		}
		d.addMany(t, 1)
		return "", nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Run(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": busy, "lento": recovers}, relay.Options{Log: silent})
	}()
	waitfor.True(t, "the backlog is sent", func() bool { return d.count(t, "canal = 'lento' and estado = 'enviado'") == 1000 })
	stop()
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
