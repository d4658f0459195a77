package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// loop has what the relay's loop does: wake-ups, claims, the watch, failing statements.
type loop struct {
	wakeups  *prometheus.CounterVec
	claims   *prometheus.CounterVec
	claimed  prometheus.Counter
	duration prometheus.Histogram
	watching prometheus.Gauge
	errors   *prometheus.CounterVec
	// rows and empty are claims' most frequent children, so that a claim need not look for them.
	rows, empty prometheus.Counter
}

func newLoop() *loop {
	l := &loop{
		wakeups: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "outbox_wakeups_total",
			Help: "Looks of the relay at the table, by what woke it."}, []string{"cause"}),
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "outbox_claims_total",
			Help: "Claims, by whether they brought rows, came back empty, or failed."}, []string{"result"}),
		claimed: prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_claimed_messages_total",
			Help: "Messages that claims took."}),
		duration: prometheus.NewHistogram(histogram("outbox_claim_duration_seconds", "Round trip of a claim that worked.")),
		watching: prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_watching",
			Help: "1 while the relay is so busy that it keeps the insert trigger silent and polls."}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "outbox_database_errors_total",
			Help: "Statements that failed, by class of SQLSTATE; none for those without one, such as a lost connection."}, []string{"class"}),
	}
	for _, cause := range []notify.Cause{notify.Start, notify.Listen, notify.Notified, notify.Help, notify.Schedule, notify.Due, notify.Poll, notify.Watched} {
		l.wakeups.WithLabelValues(string(cause))
	}
	l.rows, l.empty = l.claims.WithLabelValues("rows"), l.claims.WithLabelValues("empty")
	l.claims.WithLabelValues("failed")
	l.errors.WithLabelValues("none")
	return l
}

func (l *loop) all() []prometheus.Collector {
	return []prometheus.Collector{l.wakeups, l.claims, l.claimed, l.duration, l.watching, l.errors}
}

func (l *loop) wake(cause notify.Cause) { l.wakeups.WithLabelValues(string(cause)).Inc() }

func (l *loop) claim(c relay.Claim) {
	switch {
	case c.Err != nil:
		l.claims.WithLabelValues("failed").Inc()
		return
	case c.Rows+c.Closed > 0:
		l.rows.Inc()
		l.claimed.Add(float64(c.Rows + c.Closed))
	default:
		l.empty.Inc()
	}
	l.duration.Observe(c.Took.Seconds())
}

func (l *loop) watched(on bool) { l.watching.Set(number(on)) }

func (l *loop) databaseError(err error) {
	l.errors.WithLabelValues(class(outbox.SQLState(err))).Inc()
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
