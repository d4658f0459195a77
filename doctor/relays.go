package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// relays counts the sessions that listen for a relay. Which table they listen for only they know.
func (e *exam) relays(ctx context.Context) (string, []Finding, error) {
	const ask = "select count(*)::integer from pg_catalog.pg_stat_activity where datname = current_database() and application_name = $1::text"
	n, err := value[int](ctx, e.main, ask, notify.ListenSession)
	if err != nil {
		return "", nil, err
	}
	if n == 0 {
		return "", []Finding{found("no-relay", "no relay listens in this database", "relay run")}, nil
	}
	return fmt.Sprintf("%d listening in this database", n), nil, nil
}

//go:embed locks.sql
var locksSQL string

// maxSilence is how long a relay that watches may not have been heard by the server: it speaks every five seconds.
const maxSilence = 30 * time.Second

func (e *exam) locks(ctx context.Context) (string, []Finding, error) {
	type holder struct {
		PID                int
		Application        string
		LastHeard, Session float64 // seconds ago, negative: not seen
	}
	var classes, keys []int64
	for _, l := range []outbox.Lock{e.table.WatchLock(), e.table.CrossLock(), e.table.RoleLock()} {
		classes, keys = append(classes, int64(uint32(l.Class))), append(keys, int64(uint32(l.Key)))
	}
	holders, err := rows[holder](ctx, e.main, locksSQL, classes, keys)
	if err != nil {
		return "", nil, err
	}
	fine := "no relay keeps the writers silent"
	var all []Finding
	for _, h := range holders {
		what := fmt.Sprintf("pid %d (%q), a session since %v, holds the watch lock", h.PID, h.Application, span(h.Session))
		switch {
		case h.Application != notify.WatchSession:
			all = append(all, found("lock-foreign", what, end(h.PID)))
		case h.LastHeard > e.silence.Seconds():
			all = append(all, found("lock-stuck", fmt.Sprintf("%s and was last heard %v ago", what, span(h.LastHeard)), end(h.PID)))
		default:
			fine = what + ": a busy relay"
		}
	}
	return fine, all, nil
}
