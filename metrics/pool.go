package metrics

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolFigures reads the pool at each scrape. It costs no connection.
type poolFigures struct {
	pool                                            *pgxpool.Pool
	connections, limit                              *prometheus.Desc
	acquires, waited, waitSeconds, canceled, opened *prometheus.Desc
}

func newPoolFigures(pool *pgxpool.Pool) *poolFigures {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("outbox_pool_"+name, help, labels, nil)
	}
	return &poolFigures{
		pool:        pool,
		connections: desc("connections", "Connections of the pool: acquired, idle, constructing.", "state"),
		limit:       desc("max_connections", "The most connections that the pool opens."),
		acquires:    desc("acquires_total", "Connections taken from the pool."),
		waited:      desc("acquires_waited_total", "Connections that had to be waited for, because none was free."),
		waitSeconds: desc("acquire_wait_seconds_total", "Time spent waiting for connections."),
		canceled:    desc("acquires_canceled_total", "Waits for a connection that were given up."),
		opened:      desc("connections_opened_total", "Connections that the pool opened."),
	}
}

func (p *poolFigures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.connections, p.limit, p.acquires, p.waited, p.waitSeconds, p.canceled, p.opened} {
		to <- d
	}
}

func (p *poolFigures) Collect(to chan<- prometheus.Metric) {
	s := p.pool.Stat()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
	}
	gauge(p.connections, float64(s.AcquiredConns()), "acquired")
	gauge(p.connections, float64(s.IdleConns()), "idle")
	gauge(p.connections, float64(s.ConstructingConns()), "constructing")
	gauge(p.limit, float64(s.MaxConns()))
	counter(p.acquires, float64(s.AcquireCount()))
	counter(p.waited, float64(s.EmptyAcquireCount()))
	counter(p.waitSeconds, s.EmptyAcquireWaitTime().Seconds())
	counter(p.canceled, float64(s.CanceledAcquireCount()))
	counter(p.opened, float64(s.NewConnsCount()))
}
