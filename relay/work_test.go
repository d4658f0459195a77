package relay

import (
	"testing"

	"github.com/mafesoftware/outbox-relay/claim"
)

// A claim may be under way when the end comes: its rows arrive afterwards.
func TestNothingBeginsAfterTheEndOfWork(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan int, 10), make(chan struct{})
	w := newWork(map[string]int{"": 1}, func(row *claim.Row, _ func()) bool {
		begun <- row.Attempts
		<-finish
		return true
	})
	w.add([]*claim.Row{{Attempts: 1}, {Attempts: 2}, {Attempts: 3}})
	<-begun
	if rows := w.stop(); len(rows) != 2 || rows[0].Attempts != 2 || rows[1].Attempts != 3 {
		t.Errorf("got back %v, want the rows 2 and 3 that were not begun", rows)
	}
	if rows := w.add([]*claim.Row{{Attempts: 4}}); len(rows) != 1 || rows[0].Attempts != 4 {
		t.Errorf("got back %v, want the row 4 that came too late", rows)
	}
	close(finish)
	w.wait()
	if len(begun) != 0 {
		t.Errorf("%d more rows were begun, want none", len(begun))
	}
}
