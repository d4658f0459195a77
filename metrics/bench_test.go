package metrics_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// BenchmarkMessage is what the metrics add to one message: its send, its record, and a twentieth of a wake-up and a claim.
func BenchmarkMessage(b *testing.B) {
	pool, err := pgxpool.New(b.Context(), "postgres://nobody@127.0.0.1:1/none") // never dialled
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	m, err := metrics.Register(prometheus.NewRegistry(), pool, outbox.Table{}, senders(sent), metrics.Options{})
	if err != nil {
		b.Fatal(err)
	}
	o, ctx := m.Observer(), b.Context()
	a := relay.Attempt{ID: "7d0c6a52", Channel: "correo", Number: 1}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		a.Late = time.Duration(n%1000) * 37 * time.Microsecond
		if n%20 == 0 {
			o.Wake(notify.Notified)
			o.Claim(relay.Claim{Limit: 20, Rows: 20, Took: a.Late})
		}
		o.SendEnd(o.SendStart(ctx, a), relay.SendEnd{Attempt: a, Took: a.Late, Outcome: relay.Sent})
		o.Recorded(relay.Recorded{Attempt: a, Outcome: relay.Sent})
	}
}
