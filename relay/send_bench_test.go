package relay

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// BenchmarkSend is what a message costs between its claim and the write of its result, the database aside.
func BenchmarkSend(b *testing.B) {
	sender := transporte.Func(func(context.Context, transporte.Message) (string, error) { return "", nil })
	r := &relay{senders: Senders{"correo": sender}, log: slog.New(slog.DiscardHandler), bell: notify.NewBell()}
	r.results = newResults(r)
	r.work = newWork(map[string]int{"": 1, "correo": 100}, r.process)
	batch := &claim.Batch{TakenAt: time.Now(), Lease: 24 * time.Hour}
	rows := make([]*claim.Row, 500)
	for i := range rows {
		rows[i] = &claim.Row{TenantID: "t", Channel: "correo", Key: "k", Data: json.RawMessage("{}"), Batch: batch}
	}
	b.ReportAllocs()
	for done := 0; done < b.N; done += len(rows) {
		n := min(len(rows), b.N-done)
		r.work.add(rows[:n])
		r.work.wait()
		if got := len(r.results.pending); got != n {
			b.Fatalf("got %d results, want %d", got, n)
		}
		r.results.pending = r.results.pending[:0]
	}
}
