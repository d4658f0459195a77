package metrics

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed backlog.sql
	backlogSQL string
	//go:embed backlog_settings.sql
	backlogSettingsSQL string
)

// maxCounted bounds what one look reads on each side of now.
const maxCounted = 100_000

// side is where an unfinished message stands.
type side string

const (
	due     side = "due"
	expired side = "expired"
	paused  side = "paused" // otherwise due or expired
	later   side = "later"
	sending side = "sending"
)

// figures are the answer of one look at the table.
type figures struct {
	ok       bool
	took     time.Duration
	channels map[string]*waiting
	capped   map[side]bool // due stands for expired and paused, too, and later for sending
	trigger  bool
	queue    float64
}

// waiting is what waits of one channel.
type waiting struct {
	backlog map[side]int64
	oldest  time.Duration
}

// look asks the table, the catalog and the server. Every known channel has its figures, also when nothing waits.
func look(ctx context.Context, pool *pgxpool.Pool, table outbox.Table, known map[string]*channel) (figures, error) {
	f := figures{channels: make(map[string]*waiting, len(known))}
	for name := range known {
		f.channels[name] = &waiting{backlog: map[side]int64{due: 0, expired: 0, paused: 0, later: 0, sending: 0}}
	}
	in, err := table.Inspect(ctx, pool)
	if err != nil {
		return f, err
	}
	f.trigger = in.Trigger == outbox.TriggerOn
	if err := pool.QueryRow(ctx, "select pg_notification_queue_usage()").Scan(&f.queue); err != nil {
		return f, err
	}
	pauses, err := table.Pauses(ctx, pool)
	if err != nil {
		return f, err
	}
	return f, f.count(ctx, pool, backlogStatement(table, len(pauses) > 0))
}

// backlogStatement asks for the pauses of each row only while there are some.
func backlogStatement(table outbox.Table, pausing bool) string {
	names := table.Names()
	if !pausing {
		names["unpaused"] = "true"
	}
	return sql.Fill(backlogSQL, names)
}

func (f *figures) count(ctx context.Context, pool *pgxpool.Pool, statement string) error {
	var b pgx.Batch
	b.Queue(backlogSettingsSQL)
	b.Queue(statement, maxCounted)
	results := pool.SendBatch(ctx, &b)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	var (
		channel string
		at      side
		n       int64
		age     *float64
		counted = map[side]int64{}
	)
	_, err = pgx.ForEachRow(rows, []any{&channel, &at, &n, &age}, func() error {
		c, ok := f.channels[channel]
		if !ok {
			c = f.channels[other]
		}
		c.backlog[at] += n
		counted[at] += n
		if age != nil {
			c.oldest = max(c.oldest, time.Duration(*age*float64(time.Second)))
		}
		return nil
	})
	f.capped = map[side]bool{due: counted[due]+counted[expired]+counted[paused] >= maxCounted, later: counted[later]+counted[sending] >= maxCounted}
	return err
}
