package relay_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestTwoRelaysShareABacklogAndSendNothingTwice(t *testing.T) {
	t.Parallel()
	d := open(t)
	const n = 400
	d.addMany(t, n)
	var received receiver
	var both sync.WaitGroup // each relay waits in its first send until the other sends, too
	both.Add(2)
	share := make([]int, 2)
	for i := range share {
		var mu sync.Mutex
		first := sync.OnceFunc(func() { both.Done(); both.Wait() })
		d.start(t, func(ctx context.Context, m transporte.Message) (string, error) {
			mu.Lock()
			share[i]++
			mu.Unlock()
			first()
			return received.Send(ctx, m)
		}, relay.Options{})
	}
	waitfor.True(t, "all are sent", func() bool { return d.count(t, "estado = 'enviado'") == n })
	received.wantEachOnce(t, n)
	d.wantCount(t, "intentos = 1 and id_externo = 'ext-' || id", n)
	if share[0]+share[1] != n || share[0] == 0 || share[1] == 0 {
		t.Errorf("the relays sent %v, want both to have a share of %d", share, n)
	}
}

func TestARelayThatIsBusyLeavesWhatItCannotCarryToOthers(t *testing.T) {
	t.Parallel()
	d := open(t)
	busy, finish := make(chan struct{}, 20), make(chan struct{})
	stop := d.start(t, func(context.Context, transporte.Message) (string, error) {
		busy <- struct{}{}
		<-finish
		return "", nil
	}, relay.Options{Concurrency: 2})
	defer stop()
	defer close(finish)
	d.addMany(t, 20)
	receive(t, busy, "a send of the busy relay")
	receive(t, busy, "its second send")
	d.start(t, sent, relay.Options{})
	waitfor.True(t, "the other relay sends the rest", func() bool { return d.count(t, "estado = 'enviado'") == 18 })
}

func TestRunReachesItsConcurrencyAndNeverExceedsIt(t *testing.T) {
	t.Parallel()
	d := open(t)
	const n, concurrency = 300, 7
	d.addMany(t, n)
	var mu sync.Mutex
	var underWay, most int
	reached := make(chan struct{})
	reach := sync.OnceFunc(func() { close(reached) })
	d.start(t, func(ctx context.Context, _ transporte.Message) (string, error) {
		mu.Lock()
		underWay++
		most = max(most, underWay)
		if underWay == concurrency {
			reach()
		}
		mu.Unlock()
		select { // the first ones wait for each other
		case <-reached:
		case <-ctx.Done():
		}
		mu.Lock()
		underWay--
		mu.Unlock()
		return "", nil
	}, relay.Options{Concurrency: concurrency, Batch: 3})
	receive(t, reached, "as many sends at once as Concurrency")
	waitfor.True(t, "all are sent", func() bool { return d.count(t, "estado = 'enviado'") == n })
	mu.Lock()
	defer mu.Unlock()
	if most != concurrency {
		t.Errorf("got %d sends at once, want %d", most, concurrency)
	}
}

func TestAPoolOfOneIsEnoughAlsoForASenderThatUsesIt(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	migrateUp(t, pool)
	d := database{pool}
	d.start(t, func(ctx context.Context, m transporte.Message) (id string, err error) {
		err = pool.QueryRow(ctx, "select datos->>'id' from outbox where id = $1::uuid", m.ID).Scan(&id)
		return id, err
	}, relay.Options{Concurrency: 10})
	d.exec(t, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, datos)
		select gen_random_uuid(), 'correo', 'x', 'aviso', n::text, jsonb_build_object('id', n) from generate_series(1, 100) n`)
	waitfor.True(t, "all are sent", func() bool { return d.count(t, "estado = 'enviado'") == 100 })
	d.wantCount(t, "id_externo = clave_idempotencia and intentos = 1", 100)
}

func TestTheObserverSeesEachStepOfAMessageInItsOrder(t *testing.T) {
	t.Parallel()
	d := open(t)
	id := d.add(t, fields{"programado_para": "now() - interval '1 hour'", "intentos": "1"})
	var mu sync.Mutex
	var steps []string
	note := func(step string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, step)
	}
	recorded := make(chan relay.Recorded, 1)
	d.start(t, func(context.Context, transporte.Message) (string, error) {
		note("send")
		return "", &transporte.Error{Category: "limite", Code: "429", Uncertain: true}
	}, relay.Options{Observer: relay.Observer{
		Claim: func(c relay.Claim) {
			if c.Rows > 0 {
				note("claim")
			}
		},
		SendStart: func(ctx context.Context, a relay.Attempt) context.Context {
			note("start")
			if a.ID != id || a.Number != 2 || a.Channel != "correo" || a.TenantID != "6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f" ||
				a.Late < time.Hour || a.Late > 2*time.Hour {
				t.Errorf("got %+v, want attempt 2 of %s, an hour late", a, id)
			}
			return ctx
		},
		SendEnd: func(_ context.Context, e relay.SendEnd) {
			note("end")
			if e.ID != id || e.Category != "limite" || e.Code != "429" || !e.Uncertain || e.Abandoned {
				t.Errorf("got %+v, want limite 429, uncertain, of %s", e, id)
			}
		},
		Recorded: func(r relay.Recorded) {
			note("recorded")
			recorded <- r
		},
	}})
	r := receive(t, recorded, "the record")
	if r.ID != id || r.Outcome != relay.Retried || r.Category != "limite" || r.Code != "429" || r.RetryIn < 45*time.Second {
		t.Errorf("got %+v, want retried, limite 429, in about a minute", r)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"claim", "start", "send", "end", "recorded"}; !slices.Equal(steps, want) {
		t.Errorf("got %v, want %v", steps, want)
	}
}
