package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mafesoftware/outbox-relay/retention"
)

// purges has what retention deletes.
type purges struct {
	deleted prometheus.Counter
	rounds  *prometheus.CounterVec
	last    prometheus.Gauge
}

func newPurges() *purges {
	p := &purges{
		deleted: prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_purged_messages_total",
			Help: "Finished messages that retention deleted."}),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "outbox_purges_total",
			Help: "Rounds of retention: done, failed, or skipped because another relay was at it."}, []string{"result"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_purge_last_success_timestamp_seconds",
			Help: "When this process last completed a round of retention, 0 if it never has."}),
	}
	for _, result := range []string{"done", "failed", "skipped"} {
		p.rounds.WithLabelValues(result)
	}
	return p
}

func (p *purges) all() []prometheus.Collector {
	return []prometheus.Collector{p.deleted, p.rounds, p.last}
}

func (p *purges) purged(r retention.Round) {
	p.deleted.Add(float64(r.Deleted))
	switch {
	case r.Err != nil:
		p.rounds.WithLabelValues("failed").Inc()
	case r.Skipped:
		p.rounds.WithLabelValues("skipped").Inc()
	default:
		p.rounds.WithLabelValues("done").Inc()
		p.last.SetToCurrentTime()
	}
}
