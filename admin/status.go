package admin

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed status_live.sql
	statusLiveSQL string
	//go:embed status_failed.sql
	statusFailedSQL string
	//go:embed status_blocks.sql
	statusBlocksSQL string
	//go:embed status_size.sql
	statusSizeSQL string
)

// What Status looks at, so that it stays below 100 ms on ten million messages: entries of each partial index, and blocks of
// 8 kB at the end of the table. A table of fewer blocks is counted as it is.
const (
	countedRows   = 20_000
	countedBlocks = 512
)

// Count is how many messages of a channel are in a state.
type Count struct {
	State    outbox.State `json:"state"`
	Channel  string       `json:"channel"`
	Messages int64        `json:"messages"`
	// Estimated: more than Status counts one by one; from the statistics of the last analyze, without one from the newest part
	// of the table.
	Estimated bool `json:"estimated"`
	// Of those that wait or are being sent: Due need attention now, OldestDue seconds is the time since the first did, Paused
	// are not taken by any relay.
	Due       int64   `json:"due,omitempty"`
	OldestDue float64 `json:"oldest_due_seconds,omitempty"`
	Paused    int64   `json:"paused,omitempty"`
}

// Rates are messages in a time that ends now.
type Rates struct {
	Enqueued int64 `json:"enqueued"`
	Sent     int64 `json:"sent"`
	Failed   int64 `json:"failed"` // fallido and descartado
}

// Status is how an outbox stands.
type Status struct {
	Table  string  `json:"table"`
	Counts []Count `json:"counts"` // by state and channel, in the order of a message's life
	// Due, OldestDue (in seconds) and Paused are those of all counts together.
	Due        int64   `json:"due"`
	OldestDue  float64 `json:"oldest_due_seconds"`
	Paused     int64   `json:"paused"`
	LastMinute Rates   `json:"last_minute"`
	LastHour   Rates   `json:"last_hour"`
	// AtLeast: the rates are of the newest part of the table only. They are low where new messages fill the gaps that a
	// purge has left.
	AtLeast bool           `json:"rates_at_least"`
	Pauses  []outbox.Pause `json:"pauses"`
}

// Look gives the status, in one snapshot. It is cheap on any number of finished messages: what waits and what failed is
// counted by its index up to a bound, the rest of a large table is estimated, and said to be.
func Look(ctx context.Context, db DB, t outbox.Table) (Status, error) {
	if err := ready(ctx, db, t); err != nil {
		return Status{}, err
	}
	l := look{status: Status{Table: t.String()}, names: t.Names()}
	err := read(ctx, db, func(tx pgx.Tx) error {
		for _, part := range []func(context.Context, pgx.Tx) error{l.readSize, l.readLive, l.readFailed, l.readBlocks} {
			if err := part(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Status{}, failed("status", err)
	}
	l.sum()
	if l.status.Pauses, err = t.Pauses(ctx, db); err != nil {
		return Status{}, err
	}
	return l.status, nil
}

// look is a status in the making.
type look struct {
	status Status
	names  sql.Names

	blocks       int64
	density      float64 // rows in a block, -1 if never analyzed
	live, failed float64 // rows of the indexes by the last analyze
	shares       map[string]float64
	sent         map[string]int64 // by channel, in the blocks that were looked at
	rows         int64            // in those blocks
}

func (l *look) readSize(ctx context.Context, tx pgx.Tx) error {
	var channels []string
	var shares []float64
	schema := l.names["schema"] + "."
	err := tx.QueryRow(ctx, statusSizeSQL, l.names["table"], schema+l.names["due_index"], schema+l.names["failed_index"]).
		Scan(&l.blocks, &l.density, &l.live, &l.failed, &channels, &shares)
	l.shares = map[string]float64{}
	for i, channel := range channels {
		l.shares[channel] = shares[i]
	}
	return err
}

func (l *look) readLive(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, sql.Fill(statusLiveSQL, l.names), countedRows)
	if err != nil {
		return err
	}
	var c Count
	var paused bool
	var oldest *float64
	var counts []Count
	_, err = pgx.ForEachRow(rows, []any{&c.State, &c.Channel, &paused, &c.Messages, &c.Due, &oldest}, func() error {
		c.OldestDue, c.Paused = 0, 0
		if oldest != nil {
			c.OldestDue = max(0, *oldest)
		}
		if paused {
			c.Paused = c.Messages
		}
		if n := len(counts); n > 0 && counts[n-1].State == c.State && counts[n-1].Channel == c.Channel {
			same := &counts[n-1]
			same.Messages, same.Due, same.Paused = same.Messages+c.Messages, same.Due+c.Due, same.Paused+c.Paused
			same.OldestDue = max(same.OldestDue, c.OldestDue)
			return nil
		}
		counts = append(counts, c)
		return nil
	})
	l.add(counts, l.live)
	return err
}

func (l *look) readFailed(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, sql.Fill(statusFailedSQL, l.names), countedRows)
	if err != nil {
		return err
	}
	var c Count
	var minute, hour int64
	var counts []Count
	_, err = pgx.ForEachRow(rows, []any{&c.State, &c.Channel, &c.Messages, &minute, &hour}, func() error {
		l.status.LastMinute.Failed += minute
		l.status.LastHour.Failed += hour
		counts = append(counts, c)
		return nil
	})
	l.add(counts, l.failed)
	return err
}

// add takes over counts. When there may be more than were counted, they are the shares of what the index is said to hold.
func (l *look) add(counts []Count, inIndex float64) {
	var seen int64
	for _, c := range counts {
		seen += c.Messages
	}
	factor := max(1, inIndex/float64(max(1, seen)))
	for _, c := range counts {
		if seen >= countedRows {
			c.Estimated = true
			for _, n := range []*int64{&c.Messages, &c.Due, &c.Paused} {
				*n = int64(float64(*n) * factor)
			}
		}
		l.status.Counts = append(l.status.Counts, c)
	}
}

// readBlocks counts the end of the table: what was sent, and the rates.
func (l *look) readBlocks(ctx context.Context, tx pgx.Tx) error {
	from := max(0, l.blocks-countedBlocks)
	l.status.AtLeast = from > 0
	rows, err := tx.Query(ctx, sql.Fill(statusBlocksSQL, l.names), tid(from, 0))
	if err != nil {
		return err
	}
	l.sent = map[string]int64{}
	var c Count
	var minute, hour Rates
	_, err = pgx.ForEachRow(rows, []any{&c.State, &c.Channel, &c.Messages, &minute.Sent, &hour.Sent, &minute.Enqueued, &hour.Enqueued}, func() error {
		l.rows += c.Messages
		l.status.LastMinute.Sent += minute.Sent
		l.status.LastMinute.Enqueued += minute.Enqueued
		l.status.LastHour.Sent += hour.Sent
		l.status.LastHour.Enqueued += hour.Enqueued
		if c.State == outbox.Sent {
			l.sent[c.Channel] += c.Messages
		}
		return nil
	})
	if err != nil {
		return err
	}
	if from == 0 {
		for channel, n := range l.sent {
			l.status.Counts = append(l.status.Counts, Count{State: outbox.Sent, Channel: channel, Messages: n})
		}
		return nil
	}
	l.estimateSent()
	return nil
}

// estimateSent takes what is known of the other states from all rows of a channel.
func (l *look) estimateSent() {
	if l.density < 0 || len(l.shares) == 0 { // never analyzed, or not ours to see
		l.density = float64(l.rows) / countedBlocks
		l.shares = map[string]float64{}
		for channel, n := range l.sent {
			l.shares[channel] = float64(n) / float64(max(1, l.rows))
		}
	}
	others := map[string]int64{}
	for _, c := range l.status.Counts {
		others[c.Channel] += c.Messages
	}
	for channel, share := range l.shares {
		if n := int64(share*l.density*float64(l.blocks)) - others[channel]; n > 0 {
			l.status.Counts = append(l.status.Counts, Count{State: outbox.Sent, Channel: channel, Messages: n, Estimated: true})
		}
	}
}

func (l *look) sum() {
	order := States()
	slices.SortFunc(l.status.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State)), cmp.Compare(a.Channel, b.Channel))
	})
	for _, c := range l.status.Counts {
		l.status.Due += c.Due
		l.status.Paused += c.Paused
		l.status.OldestDue = max(l.status.OldestDue, c.OldestDue)
	}
}

// Age is the time since the first message that is due fell due.
func (s Status) Age() time.Duration { return time.Duration(s.OldestDue * float64(time.Second)) }
