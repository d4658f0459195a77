package credenciales_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
)

// result is what Find gave.
type result struct {
	key   string
	found bool
	err   error
}

// gate is a look-up that says when it is under way and answers when it is told to.
type gate struct {
	counted
	begun  chan context.Context
	answer chan result
}

// newGate must be called within the bubble whose goroutines use it. The look-up heeds its context.
func newGate() *gate {
	g := &gate{begun: make(chan context.Context), answer: make(chan result)}
	g.counted.answer = func(ctx context.Context, _ string) (account, bool, error) {
		g.begun <- ctx
		select {
		case r := <-g.answer:
			return account{APIKey: r.key}, r.found, r.err
		case <-ctx.Done():
			return account{}, false, ctx.Err()
		}
	}
	return g
}

// findSoon calls Find in a goroutine.
func findSoon(ctx context.Context, cache *credenciales.Cache[account], tenantID string) <-chan result {
	done := make(chan result, 1)
	go func() {
		c, found, err := cache.Find(ctx, tenantID)
		done <- result{c.APIKey, found, err}
	}()
	return done
}

func TestOneLookUpServesAllWhoWait(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]result{
		"found": {"key", true, nil}, "missing": {}, "failed": {err: errors.New("down")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				cache := g.cache(t, credenciales.Options{})
				waiting := []<-chan result{findSoon(t.Context(), cache, "t1")}
				<-g.begun
				for range 20 {
					waiting = append(waiting, findSoon(t.Context(), cache, "t1"))
				}
				synctest.Wait() // for all to wait
				g.answer <- want
				for _, done := range waiting {
					if got := <-done; got != want {
						t.Errorf("got %v, want %v", got, want)
					}
				}
				if n := g.of("t1"); n != 1 {
					t.Errorf("got %d look-ups, want 1", n)
				}
			})
		})
	}
}

func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		cache := g.cache(t, credenciales.Options{})
		first := findSoon(t.Context(), cache, "t1")
		<-g.begun
		second := findSoon(t.Context(), cache, "t2")
		<-g.begun // although the first has no answer
		for range 2 {
			g.answer <- result{found: true}
		}
		<-first
		<-second
	})
}

func TestWhoeverWaitsLeavesWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		cache := g.cache(t, credenciales.Options{})
		first := findSoon(t.Context(), cache, "t1")
		<-g.begun
		ctx, cancel := context.WithCancel(t.Context())
		second := findSoon(ctx, cache, "t1")
		synctest.Wait()
		cancel()
		if got := <-second; !errors.Is(got.err, context.Canceled) || got.found {
			t.Errorf("got %v, want that it was cancelled", got)
		}
		g.answer <- result{"key", true, nil}
		if got := <-first; got.key != "key" || got.err != nil {
			t.Errorf("got %v, want the look-up to go on for the first", got)
		}
	})
}

func TestALookUpEndsWithTheContextOfTheSendThatMadeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		g := newGate()
		cache := g.cache(t, credenciales.Options{})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "first"))
		first := findSoon(ctx, cache, "t1")
		if got := (<-g.begun).Value(key{}); got != "first" {
			t.Errorf("got a context of %v, want the first's", got)
		}
		second := findSoon(context.WithValue(t.Context(), key{}, "second"), cache, "t1")
		third := findSoon(context.WithValue(t.Context(), key{}, "second"), cache, "t1")
		synctest.Wait()
		cancel()
		if got := <-first; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v, want that the first was cancelled", got)
		}
		// One of those who waited takes over, and the other waits for it.
		if got := (<-g.begun).Value(key{}); got != "second" {
			t.Errorf("got a context of %v, want the second's", got)
		}
		synctest.Wait()
		g.answer <- result{"key", true, nil}
		for _, done := range []<-chan result{second, third} {
			if got := <-done; got != (result{"key", true, nil}) {
				t.Errorf("got %v, want the key", got)
			}
		}
		if n := g.of("t1"); n != 2 {
			t.Errorf("got %d look-ups, want 2", n)
		}
	})
}

func TestAPanicOfALookUpIsThatSendsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, fall := make(chan bool), make(chan bool)
		calls := 0
		c := counted{answer: func(context.Context, string) (account, bool, error) {
			if calls++; calls == 1 {
				begun <- true
				<-fall
				panic("key of t1")
			}
			return account{APIKey: "key of t1"}, true, nil
		}}
		cache := c.cache(t, credenciales.Options{})
		recovered := make(chan any, 1)
		go func() {
			defer func() { recovered <- recover() }()
			_, _, _ = cache.Find(t.Context(), "t1")
		}()
		<-begun
		second := findSoon(t.Context(), cache, "t1")
		synctest.Wait()
		fall <- true
		if got := <-recovered; got != "key of t1" {
			t.Errorf("got %v, want the panic in the send that looked up", got)
		}
		if got := <-second; got.key != "key of t1" || got.err != nil {
			t.Errorf("got %v, want the second to look up itself", got)
		}
		find(t, cache, "t1")
	})
}
