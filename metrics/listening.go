package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// listening follows the session that hears notifications.
type listening struct {
	up         prometheus.Gauge
	reconnects prometheus.Counter
	before     atomic.Bool // it has been up
}

func newListening() *listening {
	return &listening{
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "outbox_listener_up",
			Help: "1 while notifications are proven to arrive; with 0 the relay polls every second."}),
		reconnects: prometheus.NewCounter(prometheus.CounterOpts{Name: "outbox_listener_reconnects_total",
			Help: "Times that the relay listened again after it had lost its session."}),
	}
}

func (l *listening) all() []prometheus.Collector { return []prometheus.Collector{l.up, l.reconnects} }

func (l *listening) changed(err error) {
	l.up.Set(number(err == nil))
	if err == nil && l.before.Swap(true) {
		l.reconnects.Inc()
	}
}
