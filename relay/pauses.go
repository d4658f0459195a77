package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// look opens the table and reads its pauses.
func (r *relay) look(ctx context.Context) (err error) {
	if r.store, _, err = claim.Open(ctx, r.pool, r.table); err != nil {
		return err
	}
	r.pauses, err = r.table.Pauses(ctx, r.pool)
	return err
}

// pausing tells whether anything is paused. Only then do claims read the pauses.
func (r *relay) pausing() bool { return len(r.pauses) > 0 }

func (r *relay) paused(row *claim.Row) bool {
	return slices.ContainsFunc(r.pauses, func(p outbox.Pause) bool { return p.Covers(row.Channel, row.TenantID) })
}

func (r *relay) channelPaused(channel string) bool {
	return slices.ContainsFunc(r.pauses, func(p outbox.Pause) bool { return p.TenantID == "" && p.Covers(channel, "") })
}

// heedDeaf is how old the pauses may be while notifications do not arrive: each poll then reads them.
const heedDeaf = deafPoll / 2

// heed reads the pauses when they may have changed, and gives back what was claimed, not begun, and is paused now. When it
// cannot, it returns false and nothing may be claimed: what is paused must not leave because a question got lost.
func (l *loop) heed(ctx context.Context) bool {
	r := l.r
	select {
	case <-r.repaused:
		l.stale = true
	default:
	}
	if !l.stale && (l.listener.Up() || time.Since(l.heeded) < heedDeaf) {
		return true
	}
	if loan := l.lent(); loan != nil {
		loan.Return() // nothing is heard while it is held
	}
	var now []outbox.Pause
	err := r.statement(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		now, err = r.table.Pauses(ctx, r.pool)
		return err
	})
	if err != nil {
		if errors.Is(err, outbox.ErrSchema) && l.failures == 0 {
			r.log.Error("nothing is claimed while the pauses cannot be read", "err", err)
		}
		l.stale, l.look = true, true
		l.failed()
		return false
	}
	l.stale, l.heeded = false, time.Now()
	if !slices.Equal(now, r.pauses) {
		r.log.Info("pauses have changed", "pauses", len(now))
		r.pauses = now
		r.results.release(r.work.withdraw(r.paused)...)
		clear(l.bounds) // what was paused may lie below
		l.look = true
	}
	return true
}
