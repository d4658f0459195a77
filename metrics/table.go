package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// patience is how long a scrape waits for new figures before it goes on with those it has.
const patience = 200 * time.Millisecond

// tableFigures has what waits in the table. Scrapes ask for it, at most once within Fresh: a relay that nobody scrapes
// asks nothing, and a database that does not answer holds up no scrape.
type tableFigures struct {
	pool  *pgxpool.Pool
	table outbox.Table
	known map[string]*channel
	opts  Options

	backlog, capped, age, trigger, queue, success, duration *prometheus.Desc

	mu     sync.Mutex
	asking chan struct{} // closed when the question under way has its answer; nil when none is
	asked  time.Time     // when that one, or the last one, began
	last   figures
}

func newTableFigures(pool *pgxpool.Pool, table outbox.Table, known map[string]*channel, opts Options) *tableFigures {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("outbox_"+name, help, labels, nil)
	}
	return &tableFigures{
		pool: pool, table: table, known: known, opts: opts,
		backlog:  desc("backlog_messages", "Unfinished messages: due, later, sending (under a lease), expired (its lease has ended), paused (otherwise due or expired).", "channel", "state"),
		capped:   desc("backlog_capped", "1 when there are more messages than were counted, of those due (and expired and paused) or later (and sending).", "state"),
		age:      desc("oldest_due_age_seconds", "How long the oldest message that is due and not paused has waited, 0 with none.", "channel"),
		trigger:  desc("trigger_enabled", "1 when the insert trigger is there, enabled, and announces on the table's channel."),
		queue:    desc("notification_queue_usage_ratio", "How full the server's notification queue is, 0 to 1: at 1 commits fail."),
		success:  desc("table_query_success", "1 when the last look at the table worked; with 0 the figures from it are absent."),
		duration: desc("table_query_duration_seconds", "How long the last look at the table took."),
	}
}

func (f *tableFigures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.backlog, f.capped, f.age, f.trigger, f.queue, f.success, f.duration} {
		to <- d
	}
}

func (f *tableFigures) Collect(to chan<- prometheus.Metric) {
	now := f.figures()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(f.success, number(now.ok))
	gauge(f.duration, now.took.Seconds())
	if !now.ok {
		return
	}
	for channel, c := range now.channels {
		for state, n := range c.backlog {
			gauge(f.backlog, float64(n), channel, string(state))
		}
		gauge(f.age, c.oldest.Seconds(), channel)
	}
	for state, more := range now.capped {
		gauge(f.capped, number(more), string(state))
	}
	gauge(f.trigger, number(now.trigger))
	gauge(f.queue, now.queue)
}

// figures gives the newest figures that can be had within patience.
func (f *tableFigures) figures() figures {
	f.mu.Lock()
	if f.asking == nil && time.Since(f.asked) >= f.opts.fresh() {
		f.asked, f.asking = time.Now(), make(chan struct{})
		go f.ask(f.asking)
	}
	asking := f.asking
	f.mu.Unlock()
	if asking != nil {
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-asking:
		case <-late.C:
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// ask ends by its own timeout.
func (f *tableFigures) ask(answered chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), f.opts.timeout())
	defer cancel()
	begun := time.Now()
	now, err := look(ctx, f.pool, f.table, f.known)
	now.ok, now.took = err == nil, time.Since(begun)
	f.mu.Lock()
	f.last, f.asking = now, nil
	f.mu.Unlock()
	close(answered)
}
