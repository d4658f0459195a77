package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler answers /healthz, /readyz and /metrics, and /debug/pprof/ WithProfiles.
func Handler(h *Health, metrics prometheus.Gatherer, profiles Profiles) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready, report := h.Ready(); ready {
			answer(w, http.StatusOK, report)
		} else {
			answer(w, http.StatusServiceUnavailable, report)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError}))
	if profiles == WithProfiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index) // and by name: heap, goroutine, ...
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// Profiles says whether /debug/pprof/ is served. It shows what is in memory to whoever asks.
type Profiles bool

const (
	NoProfiles   Profiles = false
	WithProfiles Profiles = true
)

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// Listen takes an address, HOST:PORT. An empty host means every interface.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("metrics and health: another process has the address %s: choose another one", address)
	case err != nil:
		return nil, fmt.Errorf("metrics and health: %w", err)
	}
	return l, nil
}

// slowest bounds one answer. A profile takes as long as it is asked for.
const slowest = 2 * time.Minute

// Serve answers on l until ctx ends, and then closes it. A slow or silent client costs a connection for a bounded time.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: slowest, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("metrics and health: %w", err)
}
