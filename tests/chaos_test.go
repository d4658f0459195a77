package tests

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Four relays and one in a process of its own share thousands of messages, of which a tenth fail at each attempt. One relay
// is stopped and started all the time, and the process is killed.
func TestNothingIsLostAndOnlyWhatAKilledRelayHeldIsRepeated(t *testing.T) {
	t.Parallel()
	const batches, size, share = 50, 100, 100
	b := newBox(t)
	accepted := newReceiver()
	flaky := transporte.Func(func(ctx context.Context, m transporte.Message) (string, error) {
		if rand.IntN(10) == 0 {
			return "", &transporte.Error{Category: outbox.Network, Code: "503"}
		}
		return accepted.Send(ctx, m)
	})
	opts := relay.Options{Lease: 30 * time.Second, PollInterval: 200 * time.Millisecond, Backoff: outbox.Backoff{Base: 20 * time.Millisecond}}

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDSN+"="+b.dsn)
	killed := start(t, cmd)
	killed.awaitHeard(t, b)
	for range 3 {
		b.run(t, b.pool, flaky, opts)
	}
	restarts := b.restartOften(t, flaky, opts)

	left := func() int { return b.count(t, "select count(*) from OUTBOX where estado <> 'enviado'") }
	for range batches / 2 {
		b.exec(t, insertPatient, size)
	}
	for n := 0; len(killed.ids()) < share; n++ { // the others may have been quicker
		if n == batches {
			t.Fatalf("the process sent %d messages, want a share of %d", len(killed.ids()), share)
		}
		b.exec(t, insertPatient, size)
		waitfor.True(t, "all to be sent, or enough by the process", func() bool { return len(killed.ids()) >= share || left() == 0 })
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range batches / 2 {
		b.exec(t, insertPatient, size)
	}
	<-killed.read
	held := b.list(t, "select id::text from OUTBOX where estado = 'procesando'")
	waitfor.True(t, "everything to be sent", func() bool { return left() == 0 })
	t.Logf("restarted %d times", restarts())

	printed := killed.ids()
	repeated := 0
	for _, id := range b.list(t, "select id::text from OUTBOX") {
		sends := accepted.count(id)
		byKilled := slices.Contains(printed, id)
		if byKilled {
			sends++
		}
		switch {
		case sends == 0:
			t.Errorf("%s stands as sent, and nobody got it", id)
		case sends == 2 && byKilled && slices.Contains(held, id):
			repeated++
		case sends > 1:
			t.Errorf("%s was sent %d times, want once: it was not in flight at the kill", id, sends)
		}
	}
	t.Logf("the killed relay sent %d, of which %d were sent again", len(printed), repeated)
}

const insertPatient = `insert into OUTBOX (organizacion_id, canal, destino, plantilla, clave_idempotencia, max_intentos)
	select gen_random_uuid(), 'webhook', 'd', 'p', gen_random_uuid()::text, 1000 from generate_series(1, $1::integer) i`

// awaitHeard waits until the process hears notifications.
func (p *process) awaitHeard(t *testing.T, b *box) {
	t.Helper()
	waitfor.True(t, "the process to listen", func() bool { return b.listenerPID(t) != 0 })
}

// restartOften stops and starts a relay until the function that it returns, or the end of the test, ends it for good. That
// gives how often it was.
func (b *box) restartOften(t *testing.T, sender transporte.Sender, opts relay.Options) (end func() int) {
	opts.Log = slog.New(slog.DiscardHandler)
	ended, last := make(chan struct{}), make(chan int, 1)
	go func() {
		for n := 1; ; n++ {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			err := relay.Run(ctx, b.pool, b.table, relay.Senders{"webhook": sender}, opts)
			cancel()
			if err != nil {
				t.Errorf("relay.Run: got %v, want nil", err)
			}
			select {
			case <-ended:
				last <- n
				return
			default:
			}
		}
	}()
	end = sync.OnceValue(func() int {
		close(ended)
		return <-last
	})
	t.Cleanup(func() { end() })
	return end
}

func (b *box) list(t *testing.T, query string) (texts []string) {
	t.Helper()
	query = "select coalesce(array_agg(x), '{}') from (" + b.fillIn(query) + ") as l(x)"
	if err := b.pool.QueryRow(t.Context(), query).Scan(&texts); err != nil {
		t.Fatal(err)
	}
	return texts
}

func TestCommandEndsOnSIGTERMAndLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	path := buildRelay(t)
	b := newBox(t)
	b.fill(t, 20_000)
	cmd := exec.Command(path, "run", "--print", "webhook")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+b.dsn, "RELAY_HTTP_ADDRESS=none")
	p := start(t, cmd)
	p.awaitPrinted(t, 200)
	asked := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	receive(t, "the end of its output", p.read)
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want exit code 0", err)
	}
	quick(t, "the end after the signal", time.Since(asked))
	printed, sent := p.ids(), b.list(t, "select id::text from OUTBOX where estado = 'enviado'")
	slices.Sort(printed)
	slices.Sort(sent)
	if !slices.Equal(printed, sent) {
		t.Errorf("got %d messages printed and %d that stand as sent, want the same ones", len(printed), len(sent))
	}
	if got := b.count(t, "select count(*) from OUTBOX where estado = 'procesando'"); got != 0 {
		t.Errorf("got %d messages left in procesando, want 0", got)
	}
	if got := b.count(t, "select count(*) from OUTBOX where estado = 'pendiente' and intentos <> 0"); got != 0 {
		t.Errorf("got %d messages that lost an attempt, want 0", got)
	}
	if len(printed) == 20_000 {
		t.Error("got everything printed before the signal: the test has not tested anything")
	}
	t.Logf("printed %d, ended after %v", len(printed), time.Since(asked))
}
