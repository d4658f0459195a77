package claim

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

var (
	//go:embed claim_due.sql
	claimDueSQL string
	//go:embed next_due.sql
	nextDueSQL string
	//go:embed planner.sql
	plannerSQL string
)

// asyncCommitSQL goes behind planner.sql: the claim's own transaction does not wait for the disk.
const asyncCommitSQL = ", set_config('synchronous_commit', 'off', true)"

// Row is a claimed row.
type Row struct {
	ID          [16]byte
	TenantID    string
	Channel     string
	Destination string
	Template    string
	Data        json.RawMessage
	Key         string
	Attempts    int // the one that begins now included
	MaxAttempts int
	Lease       time.Time // end of the lease by the server's clock: the fencing token
	Scheduled   time.Time // zero when the table says infinity
	OrderingKey string
	Headers     json.RawMessage // nil when there are none
	// Late is how long after it fell due the row was taken, by the server's clock.
	Late time.Duration
	// Batch is the claim that took the row.
	Batch *Batch

	due time.Time
}

// Closed is a row that the claim closed because its attempts are used up.
type Closed struct {
	ID       [16]byte
	TenantID string
	Channel  string
	Attempts int
	Code     string // lease_agotado or intentos_agotados
}

// Batch is what one Take found.
type Batch struct {
	Rows   []*Row
	Closed []Closed
	// TakenAt is this process's time just before the question went out. Use it for durations only.
	TakenAt time.Time
	// Now is the server's time of the claim, Next the earliest due time after it. Next is zero when nothing waits
	// within the horizon, or when as many rows were taken as asked for. On a Session it may be before Now, that of a row which
	// fell due just after the claim or which somebody else has locked, or the end of this claim's own lease.
	Now, Next time.Time
	// Snapshot tells which transactions the claim saw, as pg_current_snapshot writes it. Empty when that is not known.
	Snapshot string
	// Due is the due time of the last of Rows, zero without one.
	Due   time.Time
	Lease time.Duration
}

// LeaseLeft is how much of the lease may still be counted on.
func (b *Batch) LeaseLeft() time.Duration { return b.Lease - time.Since(b.TakenAt) }

// Ask is what to take.
type Ask struct {
	Limit int           // at least 1
	Lease time.Duration // whole microseconds count
	// DueFrom skips rows that fell due before it, and with them the dead entries of the index. Zero skips none.
	DueFrom time.Time
	// Channels limits the claim to these. Nil means all.
	Channels []string
	// Unpaused leaves out what is paused. It needs the table of pauses.
	Unpaused bool
	// Durable has the claim wait for the disk. Otherwise a crash of the server may lose it, and the rows are claimed again.
	Durable bool
	// Horizon bounds how far ahead Batch.Next is looked for. Zero means no bound.
	Horizon time.Duration
}

// Take claims up to ask.Limit rows that need attention, oldest due first, and closes those among them whose attempts are
// used up. Rows that somebody else has locked are passed over. When the answer is lost, the rows may be taken all the
// same: they come back when their lease ends.
func (s *Store) Take(ctx context.Context, ask Ask) (*Batch, error) {
	settings := plannerSQL
	if !ask.Durable {
		settings += asyncCommitSQL
	}
	statement := s.take
	if ask.Unpaused {
		statement = s.takeUnpaused
	}
	b := &Batch{Lease: ask.Lease, TakenAt: time.Now()}
	var from *time.Time
	if !ask.DueFrom.IsZero() {
		from = &ask.DueFrom
	}
	var horizon *time.Duration
	if ask.Horizon > 0 {
		horizon = &ask.Horizon
	}
	args := []any{ask.Limit, ask.Lease, from, ask.Channels, horizon}
	err := s.planned(ctx, settings, statement, args, func(rows pgx.Rows) error { return s.read(pgxRows{rows}, b) })
	if err != nil {
		return nil, fmt.Errorf("claim due (n=%d): %w", ask.Limit, err)
	}
	return b, nil
}

// The columns that claim_due.sql gives.
const (
	colNow = iota
	colSnapshot
	colNext
	colID
	colTenant
	colChannel
	colDestination
	colTemplate
	colData
	colKey
	colState
	colCode
	colAttempts
	colMaxAttempts
	colLease
	colScheduled
	colDue
	colOrderingKey
	colHeaders
)

func (s *Store) read(rows rows, b *Batch) error {
	for rows.Next() {
		f := rows.fields()
		if len(b.Rows)+len(b.Closed) == 0 {
			b.Now, b.Snapshot, b.Next = f.time(colNow), string(f.values[colSnapshot]), f.time(colNext)
		}
		switch {
		case f.values[colID] == nil:
		case string(f.values[colState]) == string(outbox.Failed):
			b.Closed = append(b.Closed, Closed{ID: f.id(colID), TenantID: string(f.values[colTenant]), Channel: string(f.values[colChannel]),
				Attempts: f.integer(colAttempts), Code: string(f.values[colCode])})
		default:
			b.Rows = append(b.Rows, s.row(&f, b))
		}
		if f.err != nil {
			return f.err
		}
	}
	slices.SortFunc(b.Rows, func(x, y *Row) int {
		return cmp.Or(x.due.Compare(y.due), bytes.Compare(x.ID[:], y.ID[:]))
	})
	if n := len(b.Rows); n > 0 {
		b.Due = b.Rows[n-1].due
	}
	return rows.Err()
}

func (s *Store) row(f *fields, b *Batch) *Row {
	text := f.texts(colTenant, colChannel, colDestination, colTemplate, colKey)
	r := &Row{ID: f.id(colID), TenantID: text[0], Channel: text[1], Destination: text[2], Template: text[3], Key: text[4],
		Data: f.json(colData), Attempts: f.integer(colAttempts), MaxAttempts: f.integer(colMaxAttempts), Lease: f.time(colLease),
		Scheduled: f.time(colScheduled), Batch: b, due: f.time(colDue)}
	if s.optional {
		r.OrderingKey, r.Headers = string(f.values[colOrderingKey]), f.json(colHeaders)
	}
	if !r.due.IsZero() {
		r.Late = max(0, b.Now.Sub(r.due))
	}
	return r
}
