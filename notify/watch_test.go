package notify

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// The session that a relay lost may live on at the server and hold its locks. Half of all tables have a negative key.
func TestSessionThatWasLostIsEnded(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	for _, key := range []int32{-1030114624, 42} {
		w := NewWatch()
		w.Connect = func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) }
		w.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
		w.Role = outbox.Lock{Class: 1868724306, Key: key}
		if err := w.dial(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := w.try(t.Context(), w.Role); err != nil || !got {
			t.Fatalf("got the role %v, %v, want it", got, err)
		}
		lost, pid := w.conn, w.pid
		if err := w.dial(t.Context()); err != nil {
			t.Fatal(err)
		}
		if gone, err := w.bury(t.Context(), pid); err != nil || gone {
			t.Errorf("key %d: got gone %v, %v, want the session found and ended", key, gone, err)
		}
		for gone := false; !gone; {
			var err error
			if gone, err = w.bury(t.Context(), pid); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := w.try(t.Context(), w.Role); err != nil || !got {
			t.Errorf("key %d: got the role %v, %v, want it free", key, got, err)
		}
		_ = lost.Close(t.Context())
		w.close()
	}
}
