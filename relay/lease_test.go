package relay_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestAnExpiredLeaseIsReclaimedAndAValidOneIsNot(t *testing.T) {
	t.Parallel()
	d := open(t)
	expired := d.add(t, fields{"estado": "'procesando'", "intentos": "1", "bloqueado_hasta": "now() - interval '1 second'"})
	valid := d.add(t, fields{"estado": "'procesando'", "intentos": "1", "bloqueado_hasta": "now() + interval '1 minute'"})
	var received receiver
	d.runOnce(t, received.Send, relay.Options{})
	received.wantEachOnce(t, 1)
	d.wantRow(t, expired, "estado = 'enviado' and intentos = 2")
	d.wantRow(t, valid, "estado = 'procesando' and intentos = 1")
}

func TestARowWhoseAttemptsAreUsedUpIsClosedWithoutASend(t *testing.T) {
	t.Parallel()
	d := open(t)
	died := d.add(t, fields{"estado": "'procesando'", "intentos": "5", "bloqueado_hasta": "now() - interval '1 second'"})
	odd := d.add(t, fields{"intentos": "5"})
	var received receiver
	var mu sync.Mutex
	codes := make(map[string]string)
	summary := d.runOnce(t, received.Send, relay.Options{Observer: relay.Observer{Recorded: func(r relay.Recorded) {
		mu.Lock()
		defer mu.Unlock()
		codes[r.ID] = string(r.Outcome) + " " + r.Category + " " + r.Code
	}}})
	received.wantEachOnce(t, 0)
	if summary.Claimed != 2 || summary.Failed != 2 {
		t.Errorf("got %+v, want 2 claimed and failed", summary)
	}
	for id, code := range map[string]string{died: "lease_agotado", odd: "intentos_agotados"} {
		d.wantRow(t, id, "estado = 'fallido' and intentos = 5 and ultimo_error_categoria = 'red' and ultimo_error_codigo = '"+code+"'")
		if got, want := codes[id], "failed red "+code; got != want {
			t.Errorf("the observer heard %q, want %q", got, want)
		}
	}
}

// slow is a sender that takes its time.
type slow struct {
	receiver
	takes time.Duration
}

func (s *slow) Send(ctx context.Context, m transporte.Message) (string, error) {
	<-time.After(s.takes)
	return s.receiver.Send(ctx, m)
}

// A lease of 10 s and a timeout of 5 s leave 4 s in which a send may begin.
func TestRowsThatCannotBeSentWithinTheirLeaseAreGivenBackAndNotStarvedByNewerOnes(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.addMany(t, 8)
	retry := d.add(t, fields{"intentos": "2", "proximo_intento_en": "now() - interval '1 second'", "programado_para": "now() - interval '1 hour'"})
	first := slow{takes: 2100 * time.Millisecond}
	opts := relay.Options{Batch: 9, Concurrency: 1, Lease: 10 * time.Second, Timeout: 5 * time.Second}
	opts.Observer.SendEnd = func(context.Context, relay.SendEnd) { d.addMany(t, 10) } // steady load
	summary := d.runOnce(t, first.Send, opts)
	if summary.Claimed != 9 || summary.Released == 0 || summary.Sent+summary.Released != 9 {
		t.Fatalf("got %+v, want 9 claimed, some of them sent and the others released", summary)
	}
	d.wantRow(t, retry, "intentos = 3 and estado = 'enviado'") // due first
	released := "estado = 'pendiente' and proximo_intento_en is not null"
	d.wantCount(t, released+" and intentos = 0 and bloqueado_hasta is null and ultimo_error_codigo is null", summary.Released)
	d.exec(t, "create table line as select id from outbox where "+released)

	opts.Batch = summary.Released
	d.runOnce(t, sent, opts)
	d.wantCount(t, "estado = 'enviado' and id in (select id from line)", summary.Released)
}

func TestASlowSenderAndASecondRelayNeverSendOneRowTwice(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.addMany(t, 10)
	both := slow{takes: 600 * time.Millisecond}
	slowOpts := relay.Options{Batch: 10, Concurrency: 1, Lease: 10 * time.Second, Timeout: 5 * time.Second}
	claimed := make(chan struct{})
	slowOpts.Observer.Claim = func(relay.Claim) { close(claimed) }
	slowEnded := make(chan relay.Summary, 1)
	go func() { slowEnded <- d.runOnce(t, both.Send, slowOpts) }() // needs 6 s for its 10 rows
	receive(t, claimed, "the claim of the slow relay")
	d.start(t, both.receiver.Send, relay.Options{PollInterval: 50 * time.Millisecond, Lease: 10 * time.Second, Timeout: 5 * time.Second})
	summary := receive(t, slowEnded, "the end of the slow relay")
	waitfor.True(t, "all are sent", func() bool { return d.count(t, "estado = 'enviado'") == 10 })
	if summary.Sent == 0 || summary.Released == 0 || summary.Lost != 0 {
		t.Errorf("got %+v of the slow relay, want some sent, some released and none lost", summary)
	}
	both.wantEachOnce(t, 10)
	d.wantCount(t, "intentos = 1", 10)
}
