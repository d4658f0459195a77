package credenciales

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Options of a Cache. The zero value works.
type Options struct {
	// TTL is how long credentials are used before they are looked up again: for so long after a change messages may still
	// leave with the old ones, so let both be valid meanwhile. Zero means 1 minute; negative is invalid.
	TTL time.Duration
	// MissingTTL is how long it is believed that a tenant has none: for so long after it got some its messages may still be
	// discarded. Zero means 1 s, or TTL if that is shorter; negative is invalid.
	MissingTTL time.Duration
	// Max is how many tenants are kept. Beyond it the one that was looked up first goes. Zero means 10,000; negative is
	// invalid.
	Max int
}

func (o Options) ttl() time.Duration        { return cmp.Or(o.TTL, time.Minute) }
func (o Options) missingTTL() time.Duration { return cmp.Or(o.MissingTTL, min(time.Second, o.ttl())) }
func (o Options) max() int                  { return cmp.Or(o.Max, 10_000) }

func (o Options) validate() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{{"TTL", o.ttl() > 0}, {"MissingTTL", o.missingTTL() > 0}, {"Max", o.max() > 0}} {
		if !field.ok {
			return &outbox.OptionError{Field: "credenciales.Options." + field.name, Reason: "must not be negative"}
		}
	}
	return nil
}

// Cache remembers what a Lookup found, and also that it found nothing, but no error. Several goroutines may use it at once.
// For one tenant only one look-up is under way at a time; who comes meanwhile waits for it. It prints as its name only.
type Cache[C any] struct {
	lookup Lookup[C]
	opts   Options

	mu sync.Mutex // held for a moment, never during a look-up
	// kept has an element of order for each tenant that is remembered; order has *entry[C], the oldest first.
	kept    map[string]*list.Element
	order   list.List
	flights map[string]*flight[C] // look-ups that are under way
}

// entry is what was found for a tenant, good until a time.
type entry[C any] struct {
	tenantID string
	c        C
	found    bool
	until    time.Time
}

// flight is a look-up under way, made by the first that needs it. The other fields are written before done is closed.
type flight[C any] struct {
	done  chan struct{}
	c     C
	found bool
	err   error
	// answered says that the fields above hold an answer for everybody. It is false after a panic, and when the look-up
	// failed because the context of whoever made it ended: that says nothing to those who wait.
	answered bool
}

// New returns a Cache before lookup. A nil lookup and negative options give an error that wraps outbox.ErrInvalidOptions.
func New[C any](lookup func(ctx context.Context, tenantID string) (c C, found bool, err error), opts Options) (*Cache[C], error) {
	if lookup == nil {
		return nil, fmt.Errorf("%w: credenciales.New: lookup must not be nil", outbox.ErrInvalidOptions)
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	return &Cache[C]{lookup: lookup, opts: opts, kept: map[string]*list.Element{}, flights: map[string]*flight[C]{}}, nil
}

// Find gives a tenant's credentials, from memory or by a look-up with ctx. While another goroutine looks up the same
// tenant it waits for that one, at most until ctx ends; should that one give up because its own context ended, the next
// that waits looks up itself. The error is the look-up's or the context's.
//
// It differs from golang.org/x/sync/singleflight in that a look-up belongs to a send that waits for it: it ends with its
// context, and a panic is that send's alone.
func (c *Cache[C]) Find(ctx context.Context, tenantID string) (C, bool, error) {
	for {
		e, f, mine := c.begin(tenantID)
		switch {
		case e != nil:
			return e.c, e.found, nil
		case mine:
			return c.fly(ctx, tenantID, f)
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return *new(C), false, ctx.Err()
		}
		if f.answered {
			return f.c, f.found, f.err
		}
	}
}

// begin gives what is remembered of a tenant, or the look-up that is under way, or a new one that the caller must make.
func (c *Cache[C]) begin(tenantID string) (e *entry[C], f *flight[C], mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element := c.kept[tenantID]; element != nil {
		if e := element.Value.(*entry[C]); time.Now().Before(e.until) {
			return e, nil, false
		}
		c.dropLocked(element)
	}
	if f := c.flights[tenantID]; f != nil {
		return nil, f, false
	}
	f = &flight[C]{done: make(chan struct{})}
	c.flights[tenantID] = f
	return nil, f, true
}

// fly makes the look-up f and lets go those who wait for it, whatever happens to it.
func (c *Cache[C]) fly(ctx context.Context, tenantID string, f *flight[C]) (C, bool, error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.flights, tenantID)
		if f.answered && f.err == nil {
			c.keepLocked(tenantID, f)
		}
		close(f.done)
	}()
	f.c, f.found, f.err = c.lookup(ctx, tenantID)
	f.answered = f.err == nil || ctx.Err() == nil
	return f.c, f.found, f.err
}

func (c *Cache[C]) keepLocked(tenantID string, f *flight[C]) {
	now := time.Now()
	for oldest := c.order.Front(); oldest != nil; oldest = c.order.Front() {
		if c.order.Len() < c.opts.max() && now.Before(oldest.Value.(*entry[C]).until) {
			break
		}
		c.dropLocked(oldest)
	}
	e := &entry[C]{tenantID: tenantID, c: f.c, found: f.found, until: now.Add(c.opts.missingTTL())}
	if f.found {
		e.until = now.Add(c.opts.ttl())
	}
	c.kept[tenantID] = c.order.PushBack(e)
}

func (c *Cache[C]) dropLocked(element *list.Element) {
	c.order.Remove(element)
	delete(c.kept, element.Value.(*entry[C]).tenantID)
}

// Format writes the name of the type and nothing of what the Cache holds, whatever the verb.
func (c *Cache[C]) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "credenciales.Cache") }
