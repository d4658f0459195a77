package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mafesoftware/outbox-relay/relay"
)

// outcomes are all that relay.Recorded can have.
var outcomes = []relay.Outcome{relay.Sent, relay.Retried, relay.Failed, relay.Discarded, relay.Lost, relay.Released, relay.Errored}

// messages has what becomes of messages, by channel.
type messages struct {
	outcome   *prometheus.CounterVec
	failures  *prometheus.CounterVec
	late      *prometheus.HistogramVec
	duration  *prometheus.HistogramVec
	inFlight  *prometheus.GaugeVec
	uncertain *prometheus.CounterVec
	abandoned *prometheus.CounterVec

	known map[string]*channel // and one for all others, under other
	codes codes
}

// channel has the series of one channel, so that a send need not look for them.
type channel struct {
	name                 string
	outcome              map[relay.Outcome]prometheus.Counter
	late, duration       prometheus.Observer
	inFlight             prometheus.Gauge
	uncertain, abandoned prometheus.Counter
}

func newMessages(channels []string) *messages {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"channel"}, labels...))
	}
	m := &messages{
		outcome:  counter("outbox_messages_total", "Claimed messages by what became of them.", "outcome"),
		failures: counter("outbox_failures_total", "Attempts that failed: retried, failed or discarded.", "category", "code"),
		late: prometheus.NewHistogramVec(histogram("outbox_due_to_send_seconds",
			"From when a message fell due to its send; for one that is due at once, from the begin of its transaction."), []string{"channel"}),
		duration: prometheus.NewHistogramVec(histogram("outbox_send_duration_seconds", "One send."), []string{"channel"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "outbox_sends_in_flight", Help: "Sends under way."}, []string{"channel"}),
		uncertain: counter("outbox_sends_uncertain_total",
			"Sends that failed and may have arrived all the same: these may arrive twice."),
		abandoned: counter("outbox_sends_abandoned_total",
			"Senders that did not return when their context ended. Each leaves a goroutine behind."),
		known: make(map[string]*channel, len(channels)+1),
	}
	for _, name := range append(channels, other) {
		m.known[name] = m.channel(name)
	}
	return m
}

func (m *messages) channel(name string) *channel {
	c := &channel{
		name: name, outcome: make(map[relay.Outcome]prometheus.Counter, len(outcomes)),
		late: m.late.WithLabelValues(name), duration: m.duration.WithLabelValues(name), inFlight: m.inFlight.WithLabelValues(name),
		uncertain: m.uncertain.WithLabelValues(name), abandoned: m.abandoned.WithLabelValues(name),
	}
	for _, o := range outcomes {
		c.outcome[o] = m.outcome.WithLabelValues(name, string(o))
	}
	return c
}

func (m *messages) all() []prometheus.Collector {
	return []prometheus.Collector{m.outcome, m.failures, m.late, m.duration, m.inFlight, m.uncertain, m.abandoned}
}

func (m *messages) of(name string) *channel {
	if c, ok := m.known[name]; ok {
		return c
	}
	return m.known[other]
}

func (m *messages) start(ctx context.Context, a relay.Attempt) context.Context {
	c := m.of(a.Channel)
	c.inFlight.Inc()
	c.late.Observe(a.Late.Seconds())
	return ctx
}

func (m *messages) end(_ context.Context, e relay.SendEnd) {
	c := m.of(e.Channel)
	c.inFlight.Dec()
	c.duration.Observe(e.Took.Seconds())
	if e.Uncertain {
		c.uncertain.Inc()
	}
	if e.Abandoned {
		c.abandoned.Inc()
	}
}

func (m *messages) recorded(r relay.Recorded) {
	c := m.of(r.Channel)
	c.outcome[r.Outcome].Inc()
	switch r.Outcome {
	case relay.Retried, relay.Failed, relay.Discarded:
		m.failures.WithLabelValues(c.name, category(r.Category), m.codes.bound(r.Code)).Inc()
	}
}
