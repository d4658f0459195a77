// Package retry is what those share who ask a database again and again: how long they wait, and what they log meanwhile.
package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Longest is the longest Delay.
const Longest = 5 * time.Second

const first = 50 * time.Millisecond

// Delay is the wait after so many failures in a row, counted from 0: 50 ms, doubling up to 5 s, half of it at random so that
// those who failed together do not come back together.
func Delay(failures int) time.Duration {
	d := min(first<<min(failures, 10), Longest)
	return d/2 + rand.N(d/2)
}

// Sleep returns early, with the error of ctx, when that ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Reason is what a log may hold of an error: of one of the server's only its SQLSTATE, since its text may quote data.
func Reason(err error) string {
	switch state := outbox.SQLState(err); {
	case err == nil:
		return ""
	case state != "":
		return "SQLSTATE " + state
	}
	return err.Error()
}
