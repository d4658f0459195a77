package notify

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// rung takes the wake-up that waits in the bell, empty when there is none.
func rung(b *Bell) Cause {
	select {
	case cause := <-b.C():
		return cause
	default:
		return ""
	}
}

func milliseconds(due time.Time) string { return strconv.FormatInt(due.UnixMilli(), 10) }

// noon is the server's clock in these tests, soon and later are after it.
var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	soon  = noon.Add(300 * time.Millisecond)
	later = noon.Add(10 * time.Minute)
)

func TestBellKeepsOneWakeUpAndNeverBlocks(t *testing.T) {
	b := NewBell()
	b.Ring(Notified)
	for range 1000 {
		b.Ring(Poll)
	}
	if got := rung(b); got != Notified {
		t.Errorf("got %q, want the first wake-up, %q", got, Notified)
	}
	if got := rung(b); got != "" {
		t.Errorf("got %q, want nothing more", got)
	}
}

func TestPayloadThatIsNoTimeIsAPlainWakeUp(t *testing.T) {
	for _, payload := range []string{"", "hello", "12.5", "99999999999999999999", "probe", "\x00", " "} {
		b := NewBell()
		hear(b, payload)
		if got := rung(b); got != Notified {
			t.Errorf("payload %q: got %q, want %q", payload, got, Notified)
		}
	}
}

func TestAnnouncedTimeWakesOnlyWhenItIsSoonerThanTheOneAwaited(t *testing.T) {
	for _, test := range []struct {
		name    string
		awaited time.Time
		payload string
		want    Cause
	}{
		{"nothing is awaited", time.Time{}, milliseconds(later), Schedule},
		{"sooner", later, milliseconds(soon), Schedule},
		{"the same", soon, milliseconds(soon), ""},
		{"later", soon, milliseconds(later), ""},
		{"already due", soon, milliseconds(noon.Add(-time.Hour)), Schedule},
	} {
		b := NewBell()
		b.SetNext(test.awaited)
		hear(b, test.payload)
		if got := rung(b); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// A row that commits after the claim took its snapshot is announced while the claim is under way. Its time was no news
// then, since the relay waited for a sooner one, but the claim's answer says that the relay now waits for a later one.
func TestAnnouncementDuringAClaimIsComparedWithItsAnswer(t *testing.T) {
	for _, answer := range []time.Time{{}, later} {
		b := NewBell()
		b.SetNext(noon) // the timer that led to the claim
		b.Looking()
		hear(b, milliseconds(soon))
		if got := rung(b); got != "" {
			t.Fatalf("during the claim: got %q, want nothing", got)
		}
		b.SetNext(answer)
		if got := rung(b); got != Schedule {
			t.Errorf("answer %v: got %q, want %q", answer, got, Schedule)
		}
	}
}

func TestAnnouncementBeforeAClaimDoesNotWakeAfterIt(t *testing.T) {
	b := NewBell()
	b.SetNext(noon)
	hear(b, milliseconds(soon))
	b.Looking()
	b.SetNext(later) // the row was taken, or deleted: the claim has seen it
	if got := rung(b); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

// Rows commit, are announced, are taken by others and are looked for in any order. Whenever the relay sleeps, it sleeps no
// longer than to the earliest row of those whose announcement has arrived.
func TestNoOrderOfCommitsAndClaimsOversleepsARow(t *testing.T) {
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := NewBell()
		var rows, unheard []time.Time
		var answer, timer time.Time // of the claim under way, of the relay
		claiming := false
		for range 40 {
			switch random.IntN(5) {
			case 0:
				due := noon.Add(time.Duration(random.IntN(1000)) * time.Millisecond)
				rows, unheard = append(rows, due), append(unheard, due)
			case 1:
				if len(unheard) > 0 {
					hear(b, milliseconds(unheard[0]))
					unheard = unheard[1:]
				}
			case 2:
				if len(rows) > 0 && !slices.Contains(unheard, rows[0]) {
					rows = rows[1:]
				}
			case 3:
				if !claiming {
					rung(b)
					b.Looking()
					claiming, answer = true, earliest(rows)
				}
			case 4:
				if claiming {
					b.SetNext(answer)
					claiming, timer = false, answer
				}
			}
			if claiming || len(b.rung) > 0 {
				continue // the relay is awake, or about to be
			}
			heard := slices.DeleteFunc(slices.Clone(rows), func(due time.Time) bool { return slices.Contains(unheard, due) })
			if want := earliest(heard); !want.IsZero() && (timer.IsZero() || timer.After(want)) {
				t.Fatalf("seed %d: got asleep until %v, want %v at the latest", seed, timer, want)
			}
		}
	}
}

func earliest(times []time.Time) time.Time {
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}
