package notify

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/retry"
)

var errDown = errors.New("connection refused")

// A server that is down is asked more and more rarely, but never given up.
func TestServerThatIsDownIsAskedRarelyAndForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var attempts []time.Duration
		changes := 0
		l := &Listener{
			Bell: NewBell(), Channel: channel, ProbeInterval: 10 * time.Second, ProbeTimeout: 3 * time.Second,
			Connect: func(context.Context) (*pgx.Conn, error) {
				attempts = append(attempts, time.Since(begun))
				return nil, errDown
			},
			Notify:  func(context.Context, string) error { return errDown },
			Changed: func(error) { changes++ },
			Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		if took := time.Since(begun); took != 24*time.Hour {
			t.Errorf("got the end after %v, want it with the context, after 24h", took)
		}
		early := 0
		for i, at := range attempts {
			if at < 10*time.Second {
				early++
			}
			if i > 0 && at-attempts[i-1] > retry.Longest+time.Second {
				t.Fatalf("got a gap of %v between attempts, want %v at most", at-attempts[i-1], retry.Longest)
			}
		}
		if early < 5 || early > 20 {
			t.Errorf("got %d attempts in the first 10 s, want 5 to 20", early)
		}
		if last := attempts[len(attempts)-1]; last < 24*time.Hour-retry.Longest {
			t.Errorf("got the last attempt after %v, want them to go on", last)
		}
		if changes != 1 {
			t.Errorf("got %d changes, want 1", changes)
		}
	})
}

// watched runs watch on a session that is connected, and gives why it was ended after d, nil if it was not.
func watched(t *testing.T, d time.Duration, l *Listener, h *handler) error {
	t.Helper()
	l.Bell, l.Channel, l.ProbeInterval, l.ProbeTimeout = NewBell(), channel, 10*time.Second, 3*time.Second
	l.Log, l.Changed = slog.New(slog.NewTextHandler(io.Discard, nil)), func(error) {}
	h.l, h.echo, h.listening = l, make(chan struct{}, 1), make(chan struct{}, 1)
	h.connected.Store(true)
	signal(h.listening)
	limit, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	ctx, end := context.WithCancelCause(limit)
	l.watch(ctx, h, end)
	if limit.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// hear delivers a payload as the session would.
func (h *handler) hear(payload string) {
	if *h.expected.Load() == payload {
		signal(h.echo)
	}
}

// flood delivers other notifications for as long as d.
func (h *handler) flood(d time.Duration) {
	for after := time.Duration(0); after < d; after += time.Second {
		time.AfterFunc(after, func() { h.arrived.Add(1) })
	}
}

func TestSessionIsProvenWithinEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		var probes []time.Time
		l := &Listener{Notify: func(_ context.Context, payload string) error {
			probes = append(probes, time.Now())
			h.hear(payload)
			return nil
		}}
		begun := time.Now()
		if err := watched(t, time.Hour, l, h); err != nil {
			t.Fatalf("got ended: %v, want a session that answers to go on", err)
		}
		if !l.Up() {
			t.Error("Up: got false, want true")
		}
		if !probes[0].Equal(begun) {
			t.Errorf("got the first proof after %v, want at once", probes[0].Sub(begun))
		}
		for i := range probes[1:] {
			if gap := probes[i+1].Sub(probes[i]); gap > 10*time.Second {
				t.Fatalf("got %v between two proofs, want 10s at most", gap)
			}
		}
	})
}

func TestSilenceIsTheOnlyReasonToEndASession(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// notify answers the nth probe; it may hear it.
		notify func(n int, h *handler, payload string) error
		want   error
	}{
		{"never an echo", func(int, *handler, string) error { return nil }, errDeaf},
		{"no echo any more", func(n int, h *handler, payload string) error {
			if n < 3 {
				h.hear(payload)
			}
			return nil
		}, errSilent},
		{"an echo just in time", func(_ int, h *handler, payload string) error {
			time.AfterFunc(2900*time.Millisecond, func() { h.hear(payload) })
			return nil
		}, nil},
		{"a pool that is busy, and an echo after that", func(_ int, h *handler, payload string) error {
			time.Sleep(2 * time.Second)
			time.AfterFunc(2*time.Second, func() { h.hear(payload) })
			return nil
		}, nil},
		{"an echo behind a flood", func(_ int, h *handler, payload string) error {
			h.flood(10 * time.Second)
			time.AfterFunc(10*time.Second, func() { h.hear(payload) })
			return nil
		}, nil},
		{"never an echo, and much else", func(_ int, h *handler, payload string) error {
			h.flood(time.Minute)
			return nil
		}, errDeaf},
		{"probes that cannot be sent", func(int, *handler, string) error { return errDown }, nil},
		{"a session that ends while it is asked", func(_ int, h *handler, _ string) error {
			h.connected.Store(false)
			return nil
		}, nil},
		{"a session that begins anew while the old one is asked", func(n int, h *handler, payload string) error {
			if n == 0 {
				time.AfterFunc(time.Second, func() { signal(h.listening) })
				return nil
			}
			h.hear(payload)
			return nil
		}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, n := &handler{}, 0
			l := &Listener{Notify: func(_ context.Context, payload string) error {
				defer func() { n++ }()
				return test.notify(n, h, payload)
			}}
			if err := watched(t, 5*time.Minute, l, h); !errors.Is(err, test.want) {
				t.Errorf("%s: got ended with %v, want %v", test.name, err, test.want)
			}
		})
	}
}

// The pool's connections may be dead together with the session: each probe that fails costs time in which the session
// is trusted.
func TestProbeThatCouldNotBeSentIsSentAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, n := &handler{}, 0
		var first time.Time
		l := &Listener{Notify: func(ctx context.Context, payload string) error {
			n++
			switch n {
			case 1:
				h.hear(payload)
			case 2, 3:
				if n == 2 {
					first = time.Now()
				}
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		err := watched(t, time.Hour, l, h)
		if !errors.Is(err, errSilent) {
			t.Fatalf("got ended with %v, want %v", err, errSilent)
		}
		if took := time.Since(first); took > 12*time.Second { // two probes and their pauses, and the one that is silent
			t.Errorf("got found %v after the first probe that failed, want 12s at most", took)
		}
	})
}
