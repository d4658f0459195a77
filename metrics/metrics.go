// Package metrics shows Prometheus what a relay does and what waits in its table.
//
//	m, err := metrics.Register(prometheus.DefaultRegisterer, pool, table, senders, metrics.Options{})
//	...
//	err = relay.Run(ctx, pool, table, senders, relay.Options{Observer: m.Observer()})
//
// Each series has the label outbox, so that several outboxes of one process can share a registry. Every label is bounded:
// channels without a sender, unknown categories, and codes after the first hundred are "other". docs/metrics.md says
// what each metric means and what to do about it.
package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/retention"
)

// Options of the metrics. The zero value works.
type Options struct {
	// Outbox is the value of the label outbox. Empty means "schema.table". Two outboxes of one registry need different ones.
	Outbox string
	// Fresh is how old the figures of the table may be before a scrape asks for new ones. Zero means 15 s.
	Fresh time.Duration
	// Timeout bounds that question. Zero means 2 s.
	Timeout time.Duration
}

func (o Options) fresh() time.Duration   { return cmp.Or(o.Fresh, 15*time.Second) }
func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, 2*time.Second) }

// Metrics are the figures of one outbox. They are safe for concurrent use.
type Metrics struct {
	loop      *loop
	messages  *messages
	listening *listening
	purges    *purges
}

// Register makes the metrics of one outbox and adds them to a registry. It asks the database nothing. The error wraps
// outbox.ErrInvalidOptions, or says that the registry has metrics of this outbox already.
func Register(registry prometheus.Registerer, pool *pgxpool.Pool, table outbox.Table, senders relay.Senders, opts Options) (*Metrics, error) {
	if err := table.Validate(); err != nil {
		return nil, err
	}
	m := &Metrics{loop: newLoop(), messages: newMessages(slices.Sorted(maps.Keys(senders))), listening: newListening(), purges: newPurges()}
	all := slices.Concat(m.loop.all(), m.messages.all(), m.listening.all(), m.purges.all(),
		[]prometheus.Collector{newPoolFigures(pool), newTableFigures(pool, table, m.messages.known, opts)})
	registry = prometheus.WrapRegistererWith(prometheus.Labels{"outbox": cmp.Or(opts.Outbox, plain(table))}, registry)
	for i, c := range all {
		if err := registry.Register(c); err != nil {
			for _, added := range all[:i] {
				registry.Unregister(added)
			}
			return nil, err
		}
	}
	return m, nil
}

// plain is the table's name as a person writes it.
func plain(table outbox.Table) string { return strings.ReplaceAll(table.String(), `"`, "") }

// Purged is what retention reports to: retention.Options.Done.
func (m *Metrics) Purged(r retention.Round) { m.purges.purged(r) }

// Observer is what the relay reports to. Join it with others by relay.Join.
func (m *Metrics) Observer() relay.Observer {
	return relay.Observer{
		Wake:          m.loop.wake,
		Claim:         m.loop.claim,
		SendStart:     m.messages.start,
		SendEnd:       m.messages.end,
		Recorded:      m.messages.recorded,
		Listening:     m.listening.changed,
		Watching:      m.loop.watched,
		DatabaseError: m.loop.databaseError,
	}
}

// buckets resolve 0.25 ms to 5 minutes, in seconds.
var buckets = []float64{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// histogram has these buckets, and native ones for servers that read them.
func histogram(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour}
}
