package transporte_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestPrintWritesOneLineAMessageWhateverItHolds(t *testing.T) {
	var out bytes.Buffer
	m := transporte.Message{
		ID: "row-1", TenantID: "t1", Channel: "correo", Destination: "ana@club.example\nx", Template: "turno",
		Data: json.RawMessage("{\n  \"html\": \"<b>\"\n}"), IdempotencyKey: "t1:7", Attempt: 2, OrderingKey: "o",
		Headers: map[string]string{"traceparent": "00"},
	}
	id, err := transporte.Print(&out).Send(t.Context(), m)
	if err != nil || id != "print-row-1" {
		t.Fatalf("got %q, %v, want print-row-1", id, err)
	}
	want := `{"channel":"correo","destination":"ana@club.example\nx","template":"turno","data":{"html":"<b>"},` +
		`"id":"row-1","tenant":"t1","key":"t1:7","attempt":2,"ordering_key":"o","headers":{"traceparent":"00"}}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

// slowWriter writes byte by byte: without a lock around each Write, lines mix.
type slowWriter struct {
	mu  sync.Mutex
	out []byte
}

func (w *slowWriter) Write(line []byte) (int, error) {
	for _, b := range line {
		w.mu.Lock()
		w.out = append(w.out, b)
		w.mu.Unlock()
	}
	return len(line), nil
}

func TestPrintKeepsLinesWholeWhenManyGoroutinesSend(t *testing.T) {
	var w slowWriter
	print := transporte.Print(&w)
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			m := transporte.Message{ID: fmt.Sprint(i), Data: json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)}
			if _, err := print.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	seen := map[string]bool{}
	for line := range bytes.Lines(w.out) {
		var m struct{ ID string }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("a line is mixed: %v", err)
		}
		seen[m.ID] = true
	}
	if len(seen) != 50 {
		t.Errorf("got %d messages, want 50", len(seen))
	}
}

// brokenOnce is a writer whose first Write fails.
type brokenOnce struct{ bytes.Buffer }

func (w *brokenOnce) Write(line []byte) (int, error) {
	if w.Cap() == 0 {
		w.Grow(1)
		return 0, errors.New("pipe of ana@club.example is closed")
	}
	return w.Buffer.Write(line)
}

func TestPrintTriesAWriterAgainThatFailed(t *testing.T) {
	var w brokenOnce
	print := transporte.Print(&w)
	_, err := print.Send(t.Context(), transporte.Message{})
	checkFailure(t, err, "red", "escritura", "ana")
	if _, err := print.Send(t.Context(), transporte.Message{}); err != nil || w.Len() == 0 {
		t.Errorf("got %v and %d bytes, want a line at the second attempt", err, w.Len())
	}
}

func TestPrintRefusesDataThatIsNotJSON(t *testing.T) {
	var out bytes.Buffer
	_, err := transporte.Print(&out).Send(t.Context(), transporte.Message{Data: json.RawMessage("ana")})
	checkFailure(t, err, "rechazado", "datos_invalidos", "ana")
	if out.Len() != 0 {
		t.Errorf("got %q, want nothing written", out.String())
	}
}
