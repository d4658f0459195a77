package metrics_test

import (
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/retention"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// A service that embeds the relay shows the outbox's metrics beside its own.
func ExampleRegister() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Print(err)
		return
	}
	table, senders := outbox.Table{}, relay.Senders{"correo": transporte.Print(os.Stdout)}
	m, err := metrics.Register(prometheus.DefaultRegisterer, pool, table, senders, metrics.Options{})
	if err != nil {
		log.Print(err)
		return
	}
	http.Handle("GET /metrics", promhttp.Handler()) // on the service's own server

	const month = 30 * 24 * time.Hour
	go retention.Run(ctx, pool, table, retention.Policy{outbox.Sent: month}, retention.Options{Done: m.Purged})
	if err := relay.Run(ctx, pool, table, senders, relay.Options{Observer: m.Observer()}); err != nil {
		log.Print(err)
	}
}
