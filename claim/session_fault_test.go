package claim

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// The rows are taken by then: to take others instead would leave these to their lease.
func TestSessionThatFailsAfterItsClaimGivesTheRowsAndAsksForAnotherLook(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	store := migrated(t, pool)
	addBacklog(t, pool, 100, "1 hour ago")
	store.next = "select ('never' || ($1::text[])::text || ($2::interval)::text || ($3::timestamptz)::text)::timestamptz" // cannot be read as a time
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	session, err := store.NewSession(t.Context(), conn, false, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	b, err := session.Take(t.Context(), Ask{Limit: 10, Lease: time.Minute, Channels: []string{"correo"}, Horizon: time.Second, DueFrom: time.Now().Add(-2 * time.Hour)}, func(*Batch) { begun++ })
	if state := outbox.SQLState(err); state != "22007" {
		t.Fatalf("got %v, want the second question to fail (22007)", err)
	}
	if begun != 1 || b == nil || len(b.Rows) != 10 {
		t.Fatalf("got %d calls and %+v, want the 10 rows handed out", begun, b)
	}
	if b.Next != b.Now {
		t.Errorf("got the next due time %v, want %v: look again at once", b.Next, b.Now)
	}
}
