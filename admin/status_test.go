package admin_test

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func look(t *testing.T, b box) admin.Status {
	t.Helper()
	s, err := admin.Look(t.Context(), b, b.table)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func count(s admin.Status, state outbox.State, channel string) (found admin.Count) {
	for _, c := range s.Counts {
		if c.State == state && c.Channel == channel {
			found = c
		}
	}
	return found
}

func TestStatusCountsASmallTableExactly(t *testing.T) {
	t.Parallel()
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, table)
			if s := look(t, b); len(s.Counts) != 0 || s.Due != 0 || s.AtLeast {
				t.Errorf("empty: got %+v, want nothing", s)
			}
			b.add(t, 30, outbox.Pending, "correo", "now() - i * interval '1 second'")
			b.add(t, 20, outbox.Pending, "whatsapp", "now() + interval '2 hours'") // falls due in an hour
			b.add(t, 4, outbox.Processing, "correo", "now()")
			b.add(t, 100, outbox.Sent, "correo", "now() - i * interval '1 minute' + interval '30 seconds'")
			b.add(t, 50, outbox.Failed, "whatsapp", "now() - i * interval '1 minute' + interval '30 seconds'")
			b.add(t, 2, outbox.Discarded, "whatsapp", "now()")
			if _, err := admin.Pause(t.Context(), b, b.table, "whatsapp", ""); err != nil {
				t.Fatal(err)
			}
			s := look(t, b)
			for _, want := range []admin.Count{
				{State: outbox.Pending, Channel: "correo", Messages: 30, Due: 30},
				{State: outbox.Pending, Channel: "whatsapp", Messages: 20, Paused: 20},
				{State: outbox.Processing, Channel: "correo", Messages: 4},
				{State: outbox.Sent, Channel: "correo", Messages: 100},
				{State: outbox.Failed, Channel: "whatsapp", Messages: 50},
				{State: outbox.Discarded, Channel: "whatsapp", Messages: 2},
			} {
				got := count(s, want.State, want.Channel)
				if got.OldestDue = 0; got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
			if len(s.Counts) != 6 || s.Due != 30 || s.Paused != 20 || s.AtLeast || len(s.Pauses) != 1 {
				t.Errorf("got %+v, want 6 counts, 30 due, 20 paused, one pause", s)
			}
			if age := s.Age(); age < time.Hour+30*time.Second || age > 2*time.Hour {
				t.Errorf("got an age of %v, want that of the oldest, an hour and 30 s", age)
			}
			if s.LastHour.Sent < 58 || s.LastHour.Sent > 60 || s.LastMinute.Sent > 1 || s.LastHour.Failed != 52 && s.LastHour.Failed != 51 || s.LastHour.Enqueued == 0 {
				t.Errorf("got rates %+v and %+v, want 60 sent and 52 failed in the last hour", s.LastMinute, s.LastHour)
			}
		})
	}
}

// finished fills a table with many messages that are done, few that wait and few that failed.
func finished(t *testing.T, b box, n int) {
	t.Helper()
	b.add(t, n*3/4, outbox.Sent, "correo", "now() - interval '2 days' + i * interval '1 second'")
	b.add(t, n/4, outbox.Sent, "whatsapp", "now() - interval '1 day' + i * interval '1 second'")
	b.add(t, 300, outbox.Failed, "whatsapp", "now() - i * interval '1 minute'")
	b.add(t, 1000, outbox.Pending, "correo", "now()")
}

// manyFinished is how many messages stand in the way. With ten million the test takes minutes, and also checks the time of a look.
var manyFinished = flag.Int("admin.finished", 100_000, "finished messages of the test of a status")

const tenMillion, longestLook = 10_000_000, 100 * time.Millisecond

func TestStatusOfALargeTableIsEstimatedAndSaysSo(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	n := int64(*manyFinished)
	finished(t, b, int(n))
	for _, statistics := range []string{"select 1", "analyze {{table}}", "select 1"} {
		b.exec(t, statistics)
		begun := time.Now()
		s := look(t, b)
		took := time.Since(begun)
		t.Logf("%s: a status took %v beside %d finished messages", statistics, took, n)
		if n >= tenMillion && took > longestLook {
			t.Errorf("%s: a status took %v, want at most %v", statistics, took, longestLook)
		}
		if !s.AtLeast {
			t.Errorf("%s: the rates are not said to be of a part", statistics)
		}
		if got := count(s, outbox.Failed, "whatsapp"); got.Messages != 300 || got.Estimated {
			t.Errorf("%s: got %+v, want 300 that failed, counted", statistics, got)
		}
		if got := count(s, outbox.Pending, "correo"); got.Messages != 1000 || got.Due != 1000 || got.Estimated {
			t.Errorf("%s: got %+v, want 1000 that wait, counted", statistics, got)
		}
		var sent int64
		for _, c := range s.Counts {
			if c.State == outbox.Sent {
				sent += c.Messages
				if !c.Estimated {
					t.Errorf("%s: %+v is not said to be an estimate", statistics, c)
				}
			}
		}
		if sent < n*8/10 || sent > n*12/10 {
			t.Errorf("%s: got about %d sent, want about %d", statistics, sent, n)
		}
	}
	s := look(t, b)
	for channel, want := range map[string]int64{"correo": n * 3 / 4, "whatsapp": n / 4} {
		if got := count(s, outbox.Sent, channel).Messages; got < want*9/10 || got > want*11/10 {
			t.Errorf("%s: got about %d sent, want about %d", channel, got, want)
		}
	}
}

func TestStatusOfALargeBacklogIsBounded(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 120_000, outbox.Pending, "correo", "now() - i * interval '1 second'")
	b.exec(t, "analyze {{table}}")
	s := look(t, b)
	if got := count(s, outbox.Pending, "correo"); !got.Estimated || got.Messages < 100_000 || got.Messages > 140_000 || got.Due == 0 {
		t.Errorf("got %+v, want about 120000, estimated", got)
	}
	if age := s.Age(); age < 33*time.Hour {
		t.Errorf("got an age of %v, want that of the oldest", age)
	}
}

func TestStatusReadsAsJSON(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 1, outbox.Pending, "correo", "now()")
	if _, err := admin.Pause(t.Context(), b, b.table, "correo", ""); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(look(t, b))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Counts []struct {
			State, Channel string
			Messages       int
		}
		Due    int
		Pauses []struct{ Channel string }
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Counts) != 1 || got.Counts[0].State != "pendiente" || got.Due != 1 || got.Pauses[0].Channel != "correo" {
		t.Errorf("got %s, %v", text, err)
	}
}
