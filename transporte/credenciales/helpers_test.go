package credenciales_test

import (
	"context"
	"sync"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// account is what a tenant sends with in these tests.
type account struct {
	APIKey        string
	PhoneNumberID string
}

// counted is a look-up that counts its calls by tenant and gives what a function says.
type counted struct {
	answer func(ctx context.Context, tenantID string) (account, bool, error)

	mu    sync.Mutex
	calls map[string]int
}

func (c *counted) lookup(ctx context.Context, tenantID string) (account, bool, error) {
	c.mu.Lock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[tenantID]++
	c.mu.Unlock()
	if c.answer == nil {
		return account{"key of " + tenantID, "1"}, true, nil
	}
	return c.answer(ctx, tenantID)
}

func (c *counted) of(tenantID string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[tenantID]
}

func (c *counted) cache(t testing.TB, opts credenciales.Options) *credenciales.Cache[account] {
	t.Helper()
	cache, err := credenciales.New(c.lookup, opts)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

// find wants the tenant's credentials to be found.
func find(t testing.TB, cache *credenciales.Cache[account], tenantID string) {
	t.Helper()
	got, found, err := cache.Find(t.Context(), tenantID)
	if err != nil || !found || got.APIKey != "key of "+tenantID {
		t.Errorf("got %v, %v, %v, want the key of %s", got, found, err, tenantID)
	}
}
