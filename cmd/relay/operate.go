package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/internal/health"
	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/retention"
	"github.com/mafesoftware/outbox-relay/tracing"
)

// defaultAddress is where metrics and health are served.
const defaultAddress = "127.0.0.1:9095"

// operation is what runs beside the relays: metrics, health, traces, retention.
type operation struct {
	log      *slog.Logger
	health   *health.Health
	registry *prometheus.Registry
	profiles health.Profiles
	listener net.Listener // nil: nothing is served
	traces   *traces      // nil: none
	served   []*served
	purged   []func(retention.Round) // for each of served
}

// operate takes the address and makes everything that the relays report to, and puts it into their options. What it returns
// must be closed.
func (a *app) operate(conf *config.Config, all []*served, log *slog.Logger) (op *operation, err error) {
	h := conf.HTTP
	op = &operation{log: log, served: all, registry: prometheus.NewRegistry(), profiles: health.Profiles(on(h.Pprof)),
		health: health.New(health.Options{Tolerance: h.Tolerance.Std(), PollOnly: on(h.PollOnly)})}
	defer func() {
		if err != nil {
			op.close()
		}
	}()
	if address := cmp.Or(h.Address, defaultAddress); address != "none" {
		if op.listener, err = health.Listen(a.ctx, address); err != nil {
			return op, fmt.Errorf("%w by --http-address or http.address, or none", err)
		}
	}
	if op.traces, err = newTraces(a.ctx, conf.Tracing, log); err != nil {
		return op, err
	}
	op.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	for _, s := range all {
		if err := op.observe(s); err != nil {
			return op, err
		}
	}
	return op, nil
}

// observe has a relay report to everything that is configured.
func (op *operation) observe(s *served) error {
	observers := []relay.Observer{s.options.Observer}
	purged := op.logged(s)
	if op.listener != nil {
		m, err := metrics.Register(op.registry, s.pool, s.table, s.senders, metrics.Options{Outbox: s.Name})
		if err != nil {
			return err
		}
		observers = append(observers, m.Observer(), op.health.Observer(cmp.Or(s.Name, s.table.String())))
		purged = func(r retention.Round) { m.Purged(r); op.logged(s)(r) }
	}
	if op.traces != nil {
		observers = append(observers, tracing.Observer(op.traces, op.traces.opts))
	}
	s.options.Observer = relay.Join(observers...)
	op.purged = append(op.purged, purged)
	return nil
}

// logged says what a round of retention did.
func (op *operation) logged(s *served) func(retention.Round) {
	return func(r retention.Round) {
		switch {
		case r.Err != nil:
			s.options.Log.Warn("retention failed, trying again", "deleted", r.Deleted, "err", describeDatabase(r.Err))
		case r.Deleted > 0:
			s.options.Log.Info("retention deleted old messages", "deleted", r.Deleted, "took", r.Took)
		}
	}
}

// beside runs the relays, and everything else until they have ended: health and metrics tell of the last send, too. It calls
// stopping before something that fails ends the rest.
func (op *operation) beside(ctx context.Context, stopping func(), relays func(context.Context) error) error {
	defer context.AfterFunc(ctx, op.health.Stop)()
	g, working := errgroup.WithContext(ctx)
	start := func(do func() error) {
		g.Go(func() error {
			err := do()
			if err != nil {
				stopping()
			}
			return err
		})
	}
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	if op.listener != nil {
		op.log.Info("serving metrics and health", "address", op.listener.Addr().String())
		start(func() error {
			return health.Serve(serving, op.listener, health.Handler(op.health, op.registry, op.profiles))
		})
	}
	for i, s := range op.served {
		if policy := policyOf(s.Retention); len(policy) > 0 {
			opts := retention.Options{DSN: s.options.ListenDSN, Done: op.purged[i]}
			start(func() error { return retention.Run(working, s.pool, s.table, policy, opts) })
		}
	}
	start(func() error {
		defer stopServing()
		return relays(working)
	})
	return g.Wait()
}

// policyOf leaves out what is kept for ever.
func policyOf(r config.Retention) retention.Policy {
	policy := retention.Policy{}
	for state, d := range map[outbox.State]config.Duration{outbox.Sent: r.Sent, outbox.Failed: r.Failed, outbox.Discarded: r.Discarded} {
		if d > 0 {
			policy[state] = d.Std()
		}
	}
	return policy
}

func on(b *bool) bool { return b != nil && *b }

// lastTraces bounds how long the process waits to be rid of its last spans.
const lastTraces = 5 * time.Second

func (op *operation) close() {
	if op.listener != nil {
		_ = op.listener.Close()
	}
	if op.traces != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lastTraces)
		defer cancel()
		if err := op.traces.Shutdown(ctx); err != nil {
			op.log.Warn("the last traces could not be sent", "err", describe(err))
		}
	}
}
