package credenciales_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
)

func TestCredentialsAreLookedUpAgainAfterTheTTL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts credenciales.Options
		ttl  time.Duration
	}{
		{credenciales.Options{}, time.Minute},
		{credenciales.Options{TTL: 3 * time.Second, MissingTTL: time.Hour}, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var c counted
			cache := c.cache(t, test.opts)
			find(t, cache, "t1")
			time.Sleep(test.ttl - time.Nanosecond)
			find(t, cache, "t1") // does not prolong it
			if n := c.of("t1"); n != 1 {
				t.Errorf("%v: got %d look-ups within the TTL, want 1", test.ttl, n)
			}
			time.Sleep(time.Nanosecond)
			find(t, cache, "t1")
			if n := c.of("t1"); n != 2 {
				t.Errorf("%v: got %d look-ups after the TTL, want 2", test.ttl, n)
			}
		})
	}
}

func TestThatATenantHasNoneIsBelievedForAShorterTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts credenciales.Options
		ttl  time.Duration
	}{
		{credenciales.Options{}, time.Second},
		{credenciales.Options{TTL: time.Millisecond}, time.Millisecond},
		{credenciales.Options{MissingTTL: 10 * time.Second}, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			found := false
			c := counted{answer: func(context.Context, string) (account, bool, error) { return account{APIKey: "key of t1"}, found, nil }}
			cache := c.cache(t, test.opts)
			for range 2 {
				if got, known, err := cache.Find(t.Context(), "t1"); known || err != nil {
					t.Errorf("got %v, %v, %v, want that it has none", got, known, err)
				}
				time.Sleep((test.ttl - time.Nanosecond) / 2)
			}
			if n := c.of("t1"); n != 1 {
				t.Errorf("%v: got %d look-ups within the TTL, want 1", test.ttl, n)
			}
			found = true
			time.Sleep(test.ttl)
			find(t, cache, "t1")
		})
	}
}

func TestAFailedLookUpIsNotRemembered(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	err := down
	c := counted{answer: func(context.Context, string) (account, bool, error) {
		return account{APIKey: "key of t1"}, err == nil, err
	}}
	cache := c.cache(t, credenciales.Options{})
	for range 3 {
		if got, found, err := cache.Find(t.Context(), "t1"); err != down || found {
			t.Errorf("got %v, %v, %v, want the look-up's error itself", got, found, err)
		}
	}
	err = nil
	find(t, cache, "t1")
	if n := c.of("t1"); n != 4 {
		t.Errorf("got %d look-ups, want 4", n)
	}
}

func TestAFailedLookUpAfterTheTTLDoesNotGiveOldCredentials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var err error
		c := counted{answer: func(context.Context, string) (account, bool, error) {
			return account{APIKey: "key of t1"}, err == nil, err
		}}
		cache := c.cache(t, credenciales.Options{})
		find(t, cache, "t1")
		time.Sleep(time.Minute)
		err = errors.New("down")
		if got, found, errFind := cache.Find(t.Context(), "t1"); errFind != err || found {
			t.Errorf("got %v, %v, %v, want the error", got, found, errFind)
		}
	})
}

func TestNoMoreThanMaxTenantsAreKept(t *testing.T) {
	t.Parallel()
	const most = 10
	var c counted
	cache := c.cache(t, credenciales.Options{Max: most})
	name := func(i int) string { return fmt.Sprintf("t%d", i) }
	for i := range 1000 {
		find(t, cache, name(i))
	}
	for i := 1000 - most; i < 1000; i++ { // the last ones are kept
		if find(t, cache, name(i)); c.of(name(i)) != 1 {
			t.Errorf("got %d look-ups of %s, want 1", c.of(name(i)), name(i))
		}
	}
	for i := 1000 - most - 1; i >= 0; i-- { // the others are not
		if find(t, cache, name(i)); c.of(name(i)) != 2 {
			t.Errorf("got %d look-ups of %s, want 2", c.of(name(i)), name(i))
		}
	}
}

func TestATenantThatIsLookedUpAgainTakesOnePlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		missing := true
		c := counted{answer: func(_ context.Context, tenantID string) (account, bool, error) {
			return account{APIKey: "key of " + tenantID}, tenantID == "t1" || !missing, nil
		}}
		cache := c.cache(t, credenciales.Options{Max: 2})
		find(t, cache, "t1")
		for range 3 { // what is known of t2 runs out, what is known of t1 does not
			if _, found, err := cache.Find(t.Context(), "t2"); found || err != nil {
				t.Errorf("got %v, %v, want that t2 has none", found, err)
			}
			time.Sleep(time.Second)
		}
		missing = false
		find(t, cache, "t2")
		find(t, cache, "t1")
		find(t, cache, "t2")
		if c.of("t1") != 1 || c.of("t2") != 4 {
			t.Errorf("got %d and %d look-ups, want 1 and 4", c.of("t1"), c.of("t2"))
		}
	})
}

func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	var c counted
	for name, opts := range map[string]credenciales.Options{
		"TTL": {TTL: -1}, "MissingTTL": {MissingTTL: -1}, "Max": {Max: -1},
	} {
		cache, err := credenciales.New(c.lookup, opts)
		if cache != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "Options."+name+" ") {
			t.Errorf("got %v, want ErrInvalidOptions that names %s", err, name)
		}
	}
	cache, err := credenciales.New[account](nil, credenciales.Options{})
	if cache != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "lookup must") {
		t.Errorf("got %v, want ErrInvalidOptions that names lookup", err)
	}
}

func TestManyGoroutinesFindTheCredentialsOfTheirTenant(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	c := counted{answer: func(_ context.Context, tenantID string) (account, bool, error) {
		if rand.IntN(4) == 0 {
			return account{}, false, down
		}
		return account{APIKey: "key of " + tenantID}, true, nil
	}}
	cache := c.cache(t, credenciales.Options{Max: 5, TTL: 50 * time.Microsecond})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 500 {
				tenant := fmt.Sprintf("t%d", rand.IntN(12))
				got, found, err := cache.Find(t.Context(), tenant)
				if err == down && !found {
					continue
				}
				if err != nil || !found || got.APIKey != "key of "+tenant {
					t.Errorf("got %v, %v, %v, want the key of %s", got, found, err, tenant)
				}
			}
		})
	}
	all.Wait()
}
