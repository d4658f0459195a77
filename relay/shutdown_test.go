package relay_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestRunThatIsStoppedFinishesItsSendAndGivesTheRestBackToAnotherRelay(t *testing.T) {
	t.Parallel()
	d := open(t)
	const n = 500 // enough for a relay to claim ahead again after a send that took long
	d.addMany(t, n)
	var received receiver
	// The relay sends quickly, and so claims ahead; from the first claim of several rows on it is held in a send.
	var ahead, holding sync.Once
	hold, held, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	released := make(chan struct{}, n)
	stop := d.start(t, func(ctx context.Context, m transporte.Message) (string, error) {
		select {
		case <-hold:
			holding.Do(func() { close(held) })
			<-finish
		default:
		}
		return received.Send(ctx, m)
	}, relay.Options{Concurrency: 1, Observer: relay.Observer{
		Claim: func(c relay.Claim) {
			if c.Rows > 1 {
				ahead.Do(func() { close(hold) })
			}
		},
		Recorded: func(r relay.Recorded) {
			if r.Outcome == relay.Released {
				released <- struct{}{}
			}
		},
	}})
	receive(t, held, "a send with rows waiting behind it")
	// The other relay is asleep, and its poll is far away: it must be rung for.
	asleep := make(chan struct{}, 1000)
	d.start(t, received.Send, relay.Options{PollInterval: 10 * time.Minute, Observer: relay.Observer{Claim: func(c relay.Claim) {
		if c.Rows < c.Limit {
			asleep <- struct{}{}
		}
	}}})
	receive(t, asleep, "a claim of the other relay that finds no more")
	called := d.listen(t, "help")

	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	receive(t, released, "the release of what was claimed and not begun")
	select {
	case <-stopped:
		t.Error("Run returned while a send was under way")
	default:
	}
	receive(t, called, "the call to the other relays")
	waitfor.True(t, "the other relay sends the rest", func() bool { return d.count(t, "estado = 'enviado'") == n-1 })
	close(finish)
	receive(t, stopped, "the end of Run")
	received.wantEachOnce(t, n)
	d.wantCount(t, "estado = 'enviado' and intentos = 1", n)
}

func TestRunOnceThatIsStoppedGivesBackWhatItHasNotBegun(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.addMany(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	recorded := make(chan relay.Recorded, 10)
	opts := relay.Options{Concurrency: 2, Log: silent, Observer: relay.Observer{Recorded: func(r relay.Recorded) { recorded <- r }}}
	begun, finish := make(chan struct{}, 10), make(chan struct{})
	ended := make(chan relay.Summary, 1)
	go func() {
		summary, _ := relay.RunOnce(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": transporte.Func(func(ctx context.Context, _ transporte.Message) (string, error) {
			begun <- struct{}{}
			<-finish
			return "", ctx.Err() // what has begun is not cut
		})}, opts)
		ended <- summary
	}()
	receive(t, begun, "the first send")
	receive(t, begun, "the second send")
	cancel()
	for range 8 {
		if r := receive(t, recorded, "a release"); r.Outcome != relay.Released {
			t.Errorf("got %s, want released", r.Outcome)
		}
	}
	close(finish)
	if summary := receive(t, ended, "the end of RunOnce"); summary.Sent != 2 || summary.Released != 8 {
		t.Errorf("got %+v, want 2 sent and 8 released", summary)
	}
	d.wantCount(t, "estado = 'pendiente' and intentos = 0 and bloqueado_hasta is null", 8)
}

func TestRowsOfAClaimDuringWhichTheEndCameAreGivenBackUnsent(t *testing.T) {
	t.Parallel()
	senders := func(t *testing.T) relay.Senders {
		return relay.Senders{"correo": transporte.Func(func(context.Context, transporte.Message) (string, error) {
			t.Error("a send began after the end")
			return "", nil
		})}
	}
	for name, run := range map[string]func(ctx context.Context, d database, s relay.Senders, opts relay.Options) error{
		"Run": func(ctx context.Context, d database, s relay.Senders, opts relay.Options) error {
			return relay.Run(ctx, d.Pool, outbox.Table{}, s, opts)
		},
		"RunOnce": func(ctx context.Context, d database, s relay.Senders, opts relay.Options) error {
			_, err := relay.RunOnce(ctx, d.Pool, outbox.Table{}, s, opts)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.addMany(t, 5)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			opts := relay.Options{Log: silent, Observer: relay.Observer{Claim: func(relay.Claim) { cancel() }}}
			if err := run(ctx, d, senders(t), opts); err != nil {
				t.Fatal(err)
			}
			d.wantCount(t, "estado = 'pendiente' and intentos = 0 and bloqueado_hasta is null", 5)
		})
	}
}

func TestAClaimThatTheDatabaseHasNotAnsweredWhenTheEndComesIsGivenBack(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.exec(t, `create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(7); return new; end $$;
		create trigger hold before update on outbox for each row when (new.estado = 'procesando') execute function hold()`)
	tx, err := d.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock(7)"); err != nil {
		t.Fatal(err)
	}
	d.addMany(t, 5)
	var received receiver
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- relay.Run(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": &received}, relay.Options{Log: silent})
	}()
	waitfor.True(t, "the claim is under way", func() bool {
		var waiting bool
		err := d.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and objid = 7 and not granted
			and database = (select oid from pg_database where datname = current_database()))`).Scan(&waiting)
		return err == nil && waiting
	})
	cancel()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended, "the end of Run"); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	received.wantEachOnce(t, 0)
	d.wantCount(t, "estado = 'pendiente' and intentos = 0 and bloqueado_hasta is null", 5)
}

func TestAResultIsWrittenAlthoughTheEndComesRightAfterTheAnswer(t *testing.T) {
	t.Parallel()
	d := open(t)
	var received receiver
	const rounds = 110
	for range rounds {
		d.addMany(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		opts := relay.Options{Concurrency: 2, Log: silent, Observer: relay.Observer{SendEnd: func(context.Context, relay.SendEnd) { cancel() }}}
		if err := relay.Run(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": &received}, opts); err != nil {
			t.Fatal(err)
		}
		d.wantCount(t, "estado = 'procesando'", 0)
	}
	d.wantCount(t, "estado = 'enviado'", received.arrived())
	d.runOnce(t, received.Send, relay.Options{Batch: 3 * rounds})
	received.wantEachOnce(t, 3*rounds)
	d.wantCount(t, "estado = 'enviado' and intentos = 1", 3*rounds)
}

// Not parallel: it looks at all goroutines of the process.
func TestRunLeavesNoGoroutineBehind(t *testing.T) {
	d := open(t)
	d.addMany(t, 20)
	stop := d.start(t, sent, relay.Options{})
	waitfor.True(t, "all are sent", func() bool { return d.count(t, "estado = 'enviado'") == 20 })
	if ours() == "" {
		t.Fatal("found no goroutine of a relay that runs: the test looks for the wrong ones")
	}
	stop()
	d.addMany(t, 3)
	d.runOnce(t, sent, relay.Options{})
	waitfor.True(t, "no goroutine of the relay is left", func() bool { return ours() == "" })
}

// ours gives the goroutines that run code of the relay or its listener, or were started by it. Tests that wait for their
// turn are none of them.
func ours() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var found []string
	for _, g := range strings.Split(string(all), "\n\n") {
		for _, name := range []string{"outbox-relay/relay.", "outbox-relay/notify.", "pgxlisten."} {
			if strings.Contains(g, name) && !strings.Contains(g, "testing.tRunner(") {
				found = append(found, g)
				break
			}
		}
	}
	return strings.Join(found, "\n\n")
}
