package outbox

import (
	"testing"
	"time"
)

func TestDecideComparesWithNowInclusively(t *testing.T) {
	now := time.Date(2026, 9, 24, 12, 0, 0, 0, time.UTC)
	past, future := now.Add(-time.Microsecond), now.Add(time.Microsecond) // Postgres counts microseconds
	tests := []struct {
		name string
		row  Row
		want Decision
	}{
		{"due since before now", Row{State: "pendiente", MaxAttempts: 5, ScheduledFor: past}, Send},
		{"due exactly now", Row{State: "pendiente", MaxAttempts: 5, ScheduledFor: now}, Send},
		{"due later", Row{State: "pendiente", MaxAttempts: 5, ScheduledFor: future}, Wait},
		{"retry due before now", Row{State: "pendiente", Attempts: 1, MaxAttempts: 5,
			ScheduledFor: past, NextAttemptAt: past}, Send},
		{"retry due exactly now", Row{State: "pendiente", Attempts: 1, MaxAttempts: 5,
			ScheduledFor: past, NextAttemptAt: now}, Send},
		{"retry due later", Row{State: "pendiente", Attempts: 1, MaxAttempts: 5,
			ScheduledFor: past, NextAttemptAt: future}, RetryLater},
		{"moved to later after a failure", Row{State: "pendiente", Attempts: 1, MaxAttempts: 5,
			ScheduledFor: future, NextAttemptAt: past}, Wait},
		{"scheduled and retry later", Row{State: "pendiente", Attempts: 1, MaxAttempts: 5,
			ScheduledFor: future, NextAttemptAt: future}, Wait},
		{"lease ended before now", Row{State: "procesando", Attempts: 1, MaxAttempts: 5, LeaseUntil: past}, Reclaim},
		{"lease ends exactly now", Row{State: "procesando", Attempts: 1, MaxAttempts: 5, LeaseUntil: now}, Reclaim},
		{"lease holds", Row{State: "procesando", Attempts: 1, MaxAttempts: 5, LeaseUntil: future}, Wait},
		{"no lease", Row{State: "procesando", Attempts: 1, MaxAttempts: 5}, Wait},
		{"only the lease counts while it is processed", Row{State: "procesando", Attempts: 1, MaxAttempts: 5,
			ScheduledFor: future, NextAttemptAt: future, LeaseUntil: past}, Reclaim},
		{"a lease left behind does not hold a pending row", Row{State: "pendiente", MaxAttempts: 5, LeaseUntil: future}, Send},
	}
	for _, test := range tests {
		if got := Decide(test.row, now); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestDecideDiscardsARowWithoutAttemptsLeftUnlessALeaseHolds(t *testing.T) {
	now := time.Date(2026, 9, 24, 12, 0, 0, 0, time.UTC)
	past, future := now.Add(-time.Hour), now.Add(time.Hour)
	tests := []struct {
		name string
		row  Row
		want Decision
	}{
		{"pending, last attempt left", Row{State: "pendiente", Attempts: 4, MaxAttempts: 5, ScheduledFor: past}, Send},
		{"pending, none left", Row{State: "pendiente", Attempts: 5, MaxAttempts: 5, ScheduledFor: past}, Discard},
		{"pending, more than allowed", Row{State: "pendiente", Attempts: 6, MaxAttempts: 5, ScheduledFor: past}, Discard},
		{"pending, none left, not due", Row{State: "pendiente", Attempts: 5, MaxAttempts: 5, ScheduledFor: future}, Discard},
		{"pending, none left, retry not due", Row{State: "pendiente", Attempts: 5, MaxAttempts: 5, NextAttemptAt: future}, Discard},
		{"lease ended, last attempt left", Row{State: "procesando", Attempts: 4, MaxAttempts: 5, LeaseUntil: past}, Reclaim},
		{"lease ended, none left", Row{State: "procesando", Attempts: 5, MaxAttempts: 5, LeaseUntil: past}, Discard},
		{"lease holds, on the last attempt", Row{State: "procesando", Attempts: 5, MaxAttempts: 5, LeaseUntil: future}, Wait},
		{"no lease, on the last attempt", Row{State: "procesando", Attempts: 5, MaxAttempts: 5}, Wait},
	}
	for _, test := range tests {
		if got := Decide(test.row, now); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestDecideNeverSendsWhatIsFinishedOrInAnUnknownState(t *testing.T) {
	now := time.Date(2026, 9, 24, 12, 0, 0, 0, time.UTC)
	future := now.Add(time.Hour)
	for _, state := range []State{"enviado", "fallido", "descartado", "pausado", "PENDIENTE", ""} {
		for _, row := range []Row{
			{State: state, MaxAttempts: 5, ScheduledFor: now, LeaseUntil: now},
			{State: state, MaxAttempts: 5, ScheduledFor: future, NextAttemptAt: future, LeaseUntil: future},
		} {
			if got := Decide(row, now); got != Discard {
				t.Errorf("%+v: got %s, want %s", row, got, Discard)
			}
		}
	}
}

func TestTerminalStatesAreTheThreeThatNoRelayTouches(t *testing.T) {
	for state, want := range map[State]bool{
		"pendiente": false, "procesando": false, "enviado": true, "fallido": true, "descartado": true, "": false,
	} {
		if got := state.Terminal(); got != want {
			t.Errorf("%q: got %t, want %t", state, got, want)
		}
	}
}
