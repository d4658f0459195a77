// Package waitfor is for tests that wait for something to come true. They do not sleep and hope.
package waitfor

import (
	"testing"
	"time"
)

// patience is how long a test waits: far above what a loaded machine needs.
const patience = 30 * time.Second

// Within asks until it is true, and tells whether it was in time.
func Within(limit time.Duration, holds func() bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			return holds() // a machine that stood still has not had its time
		}
	}
	return true
}

// True fails the test when something does not come true within 30 s.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Within(patience, holds) {
		t.Fatalf("%s: not within %v", what, patience)
	}
}
