package notify

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// told is a bell that heard payloads of the insert trigger, and whose wake-up has been taken.
func told(payloads ...string) *Bell {
	b := NewBell()
	for _, payload := range payloads {
		hear(b, payload)
	}
	rung(b)
	return b
}

func covered(b *Bell) bool {
	select {
	case <-b.Covered():
		all, _ := b.Rest()
		return all
	default:
		return false
	}
}

func TestAnotherRelayCoversOnlyTheTransactionsThatItSaw(t *testing.T) {
	for _, test := range []struct {
		name      string
		announced []string
		snapshot  string
		want      bool
	}{
		{"one that it saw", []string{"x7"}, "8:8:", true},
		{"one that was still in progress", []string{"x7"}, "7:9:7", false},
		{"one that began later", []string{"x7"}, "7:7:", false},
		{"two, of which it saw one", []string{"x7", "x9"}, "8:9:", false},
		{"two that it saw", []string{"x7", "x9"}, "8:10:8", true},
		{"one with a due time", []string{milliseconds(soon) + "x7"}, "8:8:", true},
		{"an announcement without a transaction", []string{""}, "8:8:", false},
		{"something else", []string{"hello"}, "8:8:", false},
		{"no snapshot", []string{"x7"}, "8:8", false},
		{"a snapshot with a hole", []string{"x7"}, "8:8:a", false},
		{"a negative end", []string{"x7"}, "8:-8:", false},
	} {
		b := told(test.announced...)
		b.cover(noon, parseSnapshot(test.snapshot))
		if got := covered(b); got != test.want {
			t.Errorf("%s: got covered %v, want %v", test.name, got, test.want)
		}
	}
}

func TestAnnouncementAfterTheCoverIsNotCovered(t *testing.T) {
	b := told("x7")
	b.cover(noon, parseSnapshot("8:8:"))
	hear(b, "x8")
	if covered(b) {
		t.Error("got covered, want the transaction that came last to be looked for")
	}
}

func TestMoreAnnouncementsThanAreRememberedAreNotCovered(t *testing.T) {
	b := NewBell()
	for id := range 3 * maxUnseen {
		hear(b, fmt.Sprintf("x%d", id+1))
	}
	if got := len(b.unseen); got > maxUnseen {
		t.Errorf("got %d transactions remembered, want %d at most", got, maxUnseen)
	}
	b.cover(noon, parseSnapshot("1000000:1000000:"))
	if covered(b) {
		t.Error("got covered, want what was forgotten to be looked for")
	}
}

func TestDueTimeThatAnotherRelayServedIsNoLongerAwaited(t *testing.T) {
	for _, test := range []struct{ known, want time.Time }{
		{noon.Add(-time.Second), time.Time{}},
		{noon, time.Time{}},
		{soon, soon},
	} {
		b := told("x7")
		b.SetNext(test.known)
		b.cover(noon, parseSnapshot("8:8:"))
		if _, got := b.Rest(); !got.Equal(test.want) {
			t.Errorf("known %v: got %v awaited, want %v", test.known, got, test.want)
		}
	}
}

// Anybody in the database may send anything on the channel.
func FuzzForeignPayloads(f *testing.F) {
	for _, seed := range []string{"", "x", "x1", "1x1", "-1x-1", "help", "seen ", "seen a all 1 1:2:", "probe ", "probe me 1", strings.Repeat("x", 7999)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		h := &handler{l: &Listener{Bell: told("x7"), Self: "me", Scope: "all"}, echo: make(chan struct{}, 1)}
		expected := probePrefix + "me expected"
		h.expected.Store(&expected)
		for range 3 { // it must never block
			if err := h.HandleNotification(context.Background(), &pgconn.Notification{Payload: payload}, nil); err != nil {
				t.Errorf("payload %q: got %v, want nil", payload, err)
			}
		}
		if covered(h.l.Bell) && !strings.HasPrefix(payload, seenPrefix) {
			t.Errorf("payload %q: got covered, want only another relay to do that", payload)
		}
		if len(h.echo) > 0 && payload != expected {
			t.Errorf("payload %q: got taken for the probe", payload)
		}
	})
}
