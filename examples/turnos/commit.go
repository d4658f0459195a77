package main

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// commit is when the COMMIT of one booking was sent to Postgres and when its answer came.
type commit struct {
	mu             sync.Mutex
	sent, answered time.Time
}

// before gives the time from COMMIT being sent to at.
func (c *commit) before(at time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return at.Sub(c.sent)
}

// after gives the time from the answer to COMMIT to at, zero when at came first: a relay may hear of a commit before
// whoever made it.
func (c *commit) after(at time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered.IsZero() {
		return 0
	}
	return max(0, at.Sub(c.answered))
}

type commitKey struct{}

// timed gives a context in which c notes the times of a transaction's COMMIT.
func timed(ctx context.Context, c *commit) context.Context {
	return context.WithValue(ctx, commitKey{}, c)
}

// commitTracer is the pgx tracer behind timed.
type commitTracer struct{}

func (commitTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if c, ok := ctx.Value(commitKey{}).(*commit); ok && q.SQL == "commit" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent = time.Now()
	}
	return ctx
}

func (commitTracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if c, ok := ctx.Value(commitKey{}).(*commit); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.sent.IsZero() { // COMMIT is the last query of its transaction
			c.answered = time.Now()
		}
	}
}
