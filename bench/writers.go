package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// writers are an application's connections, one transaction at a time on each.
type writers struct {
	system
	conns []*pgx.Conn
}

func newWriters(ctx context.Context, e *entry, n int) (*writers, error) {
	w := &writers{system: e.system}
	for range n {
		conn, err := pgx.Connect(ctx, e.db.dsn)
		if err != nil {
			w.close(ctx)
			return nil, err
		}
		w.conns = append(w.conns, conn)
	}
	return w, nil
}

func (w *writers) close(ctx context.Context) {
	for _, conn := range w.conns {
		_ = conn.Close(context.WithoutCancel(ctx)) // nothing is lost with it
	}
}

// write commits message n, due now, in a transaction of its own: begin, insert, commit.
func (w *writers) write(ctx context.Context, writer int, p *probe, n int) error {
	tx, err := w.conns[writer].Begin(ctx)
	if err != nil {
		return err
	}
	if err := w.insert(ctx, tx, n, time.Time{}); err != nil {
		return err
	}
	p.commit(n)
	return tx.Commit(ctx)
}

// poisson commits messages [from, to) at random moments, perSecond on average. A writer that is late writes at once, so
// that a slow database does not make the load lighter.
func (w *writers) poisson(ctx context.Context, p *probe, from, to, perSecond int) error {
	mean := float64(len(w.conns)) * float64(time.Second) / float64(perSecond)
	var g errgroup.Group
	begin := time.Now()
	for i := range w.conns {
		g.Go(func() error {
			next := begin
			for n := from + i; n < to; n += len(w.conns) {
				next = next.Add(time.Duration(rand.ExpFloat64() * mean))
				if err := pause(ctx, time.Until(next)); err != nil {
					return err
				}
				if err := w.write(ctx, i, p, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// around gives half to one and a half of d.
func around(d time.Duration) time.Duration { return d/2 + rand.N(d) }

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
