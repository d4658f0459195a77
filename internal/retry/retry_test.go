package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mafesoftware/outbox-relay/internal/retry"
)

func TestDelayDoublesUpToFiveSecondsWithHalfOfItAtRandom(t *testing.T) {
	t.Parallel()
	for failures, longest := range map[int]time.Duration{
		0: 50 * time.Millisecond, 1: 100 * time.Millisecond, 6: 3200 * time.Millisecond, 7: 5 * time.Second, 1000: 5 * time.Second,
	} {
		seen := map[time.Duration]bool{}
		for range 100 {
			d := retry.Delay(failures)
			if d < longest/2 || d >= longest {
				t.Errorf("after %d failures: got %v, want %v to %v", failures, d, longest/2, longest)
			}
			seen[d] = true
		}
		if len(seen) == 1 {
			t.Errorf("after %d failures: got the same wait a hundred times", failures)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := retry.Sleep(t.Context(), time.Minute); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("got %v after %v, want nil after a minute", err, time.Since(begun))
		}
		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := retry.Sleep(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("got %v after %v, want the deadline after a second", err, time.Since(begun))
		}
	})
}

func TestReasonShowsNothingOfTheServersText(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("claim: %w", &pgconn.PgError{Code: "23505", Message: "duplicate key", Detail: "Key (destino)=(ana@example.com)"})
	for want, err := range map[string]error{"": nil, "SQLSTATE 23505": refused, "no route": errors.New("no route")} {
		if got := retry.Reason(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
