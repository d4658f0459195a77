package metrics_test

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// scene is an outbox, its metrics, and what scrapes them.
type scene struct {
	*metrics.Metrics
	pool     *pgxpool.Pool
	registry *prometheus.Registry
}

// senders are of correo and whatsapp; send serves both.
func senders(send transporte.Func) relay.Senders {
	return relay.Senders{"correo": send, "whatsapp": send}
}

func sent(context.Context, transporte.Message) (string, error) { return "", nil }

func open(t *testing.T, opts metrics.Options) scene {
	t.Helper()
	pool := pgtest.Pool(t)
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
	opts.Timeout = cmp.Or(opts.Timeout, patience) // on a machine that is loaded a look takes long
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.Register(registry, pool, outbox.Table{}, senders(sent), opts)
	if err != nil {
		t.Fatal(err)
	}
	return scene{m, pool, registry}
}

func (s scene) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// insert adds a message for each template; with is further SQL for columns and values.
func (s scene) insert(t *testing.T, channel, columns, values string, templates ...string) {
	t.Helper()
	s.exec(t, "insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia"+columns+`)
		select gen_random_uuid(), $1, 'ana@example.com', p, gen_random_uuid()::text`+values+" from unnest($2::text[]) p", channel, templates)
}

// run has a relay at work until the test ends.
func (s scene) run(t *testing.T, send transporte.Func, opts relay.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	opts.Log = slog.New(slog.DiscardHandler)
	opts.Observer = relay.Join(opts.Observer, s.Observer())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx, s.pool, outbox.Table{}, senders(send), opts) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// value gives a counter, a gauge, or the count of a histogram: the sum of the series that have these labels ("name=value").
// Without such a series it is not a number.
func (s scene) value(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum, found := 0.0, false
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && has(m, labels) {
				sum, found = sum+reading(m), true
			}
		}
	}
	if !found {
		return math.NaN()
	}
	return sum
}

func reading(m *dto.Metric) float64 {
	return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
}

func has(m *dto.Metric, labels []string) bool {
	for _, want := range labels {
		name, value, _ := strings.Cut(want, "=")
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == name && l.GetValue() == value
		}
		if !found {
			return false
		}
	}
	return true
}

func (s scene) want(t *testing.T, want float64, name string, labels ...string) {
	t.Helper()
	if got := s.value(t, name, labels...); got != want {
		t.Errorf("%s%v: got %v, want %v", name, labels, got, want)
	}
}

// looked waits for the first look at the table: a scrape waits for it only a moment.
func (s scene) looked(t *testing.T) {
	t.Helper()
	s.reaches(t, 1, "outbox_table_query_success", "outbox=public.outbox")
}

// reaches waits until a series has a value.
func (s scene) reaches(t *testing.T, want float64, name string, labels ...string) {
	t.Helper()
	if !waitfor.Within(patience, func() bool { return s.value(t, name, labels...) == want }) {
		t.Fatalf("%s%v: got %v, want %v within %v", name, labels, s.value(t, name, labels...), want, patience)
	}
}
