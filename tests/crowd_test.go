package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/relay"
)

// What is not read stays in the server's queue, and when that is full the commits of the business fail.
func TestFloodOfNotificationsIsReadWhileASenderIsBlocked(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	to := newGate(1)
	r := b.sleeping(t, b.pool, to, relay.Options{NoWatch: true}) // the flood looks like many inserts
	receive(t, "the first message", to.arrived)
	blocked := b.enqueue(t, message())
	receive(t, "the blocked send", to.arrived)
	stays := false
	for n := 0; n < 3 && !stays; n++ { // on a machine that stands still for seconds a listener may be given up
		stays = b.staysInAFlood(t, r)
	}
	if !stays {
		t.Errorf("got changes %v of the listener, want it to stay", all[listening](r.journal, 0))
	}
	close(to.open)
	r.awaitSent(t, blocked)
	b.awaitNotified(t, r)
}

// staysInAFlood tells whether the listener reads many notifications and is the same one afterwards.
func (b *box) staysInAFlood(t *testing.T, r *running) bool {
	t.Helper()
	waitfor.True(t, "a listener", func() bool { return b.listenerPID(t) != 0 })
	from, pid := r.len(), b.listenerPID(t)
	// 20 MB, which is 0.0025 of the queue.
	b.exec(t, `select count(pg_notify($1, i || repeat('-', 1000))) from generate_series(1, 20000) i`, b.table.Channel())
	b.exec(t, "select pg_notify($1, '')", b.table.Channel())
	waitfor.True(t, "the queue to be read", func() bool {
		return b.count(t, "select (pg_notification_queue_usage() * 1000000)::integer") < 100
	})
	return len(all[listening](r.journal, from)) == 0 && b.listenerPID(t) == pid
}

// Thirty relays hear of each insert. All look; what that costs is told, and nobody goes without.
func TestThirtyRelaysShareATableAndNobodyStarves(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	pool := pgtest.PoolOn(t, b.dsn, func(config *pgxpool.Config) { config.MaxConns = 20 })
	to := newReceiver()
	var relays []*running
	for range 30 {
		relays = append(relays, b.run(t, pool, to, relay.Options{PollInterval: onlyWakeUps}))
	}
	for _, r := range relays {
		r.awaitListening(t, 1)
	}
	claims := func() (n int) {
		for _, r := range relays {
			n += len(all[relay.Claim](r.journal, 0))
		}
		return n
	}
	settled := claims()
	waitfor.True(t, "the relays to fall asleep", func() bool {
		before := settled
		settled = claims()
		return settled == before
	})
	const inserts = 10
	begun := time.Now()
	for n := range inserts {
		b.enqueue(t, message())
		waitfor.True(t, "the message to be sent", func() bool { return to.total() == n+1 })
	}
	took := time.Since(begun)
	quick(t, fmt.Sprintf("%d messages, one after the other", inserts), took/inserts)
	t.Logf("30 relays, one insert after the other: %.1f claims for each, %v to its send", float64(claims()-settled)/inserts, took/inserts)
	const burst = 500
	b.fill(t, burst)
	waitfor.True(t, "a burst to be sent", func() bool { return to.total() == inserts+burst })
	waitfor.True(t, "the results to be written", func() bool {
		return b.count(t, "select count(*) from OUTBOX where estado = 'enviado'") == inserts+burst
	})
	b.allSentOnce(t, inserts+burst)
}
