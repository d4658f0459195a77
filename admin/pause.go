package admin

import (
	"context"
	_ "embed"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed pause.sql
	pauseSQL string
	//go:embed resume.sql
	resumeSQL string
)

// MaxPauses bounds the pauses of a table: while there are any, each claim compares each message with all of them.
const MaxPauses = 100

// Pause has all relays leave the messages of a channel, of a tenant, of a channel of a tenant (both), or all (neither).
// Enqueueing goes on, what is being sent is finished, and what a relay has claimed and not begun is given back with its
// attempt. Relays that listen hear of it at once, a relay that is deaf reads the pauses every second, one that starts
// reads them first. It tells whether the pause is new.
//
// Relays before version 6 of the table, and the cron of the TypeScript package, know no pauses.
func Pause(ctx context.Context, db DB, t outbox.Table, channel, tenantID string) (changed bool, err error) {
	if err := checkScope(ctx, db, t, tenantID); err != nil {
		return false, err
	}
	var n int
	statement := sql.Fill(pauseSQL, t.Names())
	err = db.QueryRow(ctx, statement, orNull(channel), orNull(tenantID), outbox.PausesChanged, MaxPauses).Scan(&n)
	if err != nil {
		return false, failed("pause", err)
	}
	if n > 0 {
		return true, nil
	}
	pauses, err := t.Pauses(ctx, db)
	if err != nil {
		return false, err
	}
	for _, p := range pauses {
		if p.Channel == channel && p.TenantID == tenantID {
			return false, nil
		}
	}
	return false, invalid("there are %d pauses, as many as there may be: pause a whole channel instead of many tenants", len(pauses))
}

// Resume takes away the pause that was made with the same channel and tenant, and tells whether there was one. What other
// pauses cover stays paused.
func Resume(ctx context.Context, db DB, t outbox.Table, channel, tenantID string) (changed bool, err error) {
	n, err := resume(ctx, db, t, channel, tenantID, false)
	return n > 0, err
}

// ResumeAll takes away every pause, and tells how many there were.
func ResumeAll(ctx context.Context, db DB, t outbox.Table) (pauses int, err error) {
	return resume(ctx, db, t, "", "", true)
}

func resume(ctx context.Context, db DB, t outbox.Table, channel, tenantID string, every bool) (n int, err error) {
	if err := checkScope(ctx, db, t, tenantID); err != nil {
		return 0, err
	}
	statement := sql.Fill(resumeSQL, t.Names())
	err = db.QueryRow(ctx, statement, orNull(channel), orNull(tenantID), outbox.PausesChanged, every).Scan(&n)
	if err != nil {
		return 0, failed("resume", err)
	}
	return n, nil
}

func checkScope(ctx context.Context, db DB, t outbox.Table, tenantID string) error {
	if err := checkTenant(t, tenantID); err != nil {
		return err
	}
	return ready(ctx, db, t)
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
