package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// chunksBefore is how many chunks are sent before the snapshot is opened.
const chunksBefore = 3

// measureSnapshot lets a relay send chunk after chunk, the first ones as usual and then chunks more of them while another
// session holds a snapshot open, as a backup does: until it ends, no index entry of a sent message can be cleaned up.
func (b *bench) measureSnapshot(ctx context.Context, chunks, size int) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	b.chunk = size
	var recorded atomic.Int64
	recording := func(r relay.Recorded) {
		if r.Outcome == relay.Sent {
			recorded.Add(1)
		}
	}
	entries, drop, err := b.enter(ctx, s, ours("ours, tuned", "concurrency 100, batch 500", ownTrigger,
		relay.Options{Concurrency: 100, Batch: 500, Observer: relay.Observer{Recorded: recording}}))
	if err != nil {
		return err
	}
	e := entries[0]
	p := newProbe((chunks + chunksBefore) * size)
	stop, err := e.start(ctx, p.handle)
	if err != nil {
		return err
	}
	snapshot, err := pgx.Connect(ctx, e.db.dsn)
	if err != nil {
		return err
	}
	for chunk := range chunksBefore + chunks {
		if chunk == chunksBefore {
			if _, err := snapshot.Exec(ctx, "begin isolation level repeatable read; select count(*) from pg_class"); err != nil {
				return err
			}
		}
		rate, err := sendChunk(ctx, e, chunk*size, size, &recorded)
		if err != nil {
			return fmt.Errorf("chunk %d: %w", chunk, err)
		}
		b.add(figure{suite: "snapshot", disk: s.disk, contender: e.name, load: snapshotLoad(chunk, size), metric: "rate", unit: "msg/s", value: rate})
	}
	if err := errors.Join(stop(), snapshot.Close(ctx), p.exactlyOnce(len(p.times))); err != nil {
		return err
	}
	return drop()
}

// snapshotLoad says how many messages had been sent under the snapshot when a chunk began.
func snapshotLoad(chunk, size int) string {
	if chunk < chunksBefore {
		return "before"
	}
	return millions((chunk - chunksBefore) * size)
}

// sendChunk writes a chunk in one transaction and gives the rate at which it is sent and recorded. What counts as recorded
// is what the relay says: to ask the table would itself go through the dead entries.
func sendChunk(ctx context.Context, e *entry, from, size int, recorded *atomic.Int64) (rate float64, err error) {
	if err := e.fill(ctx, from, from+size); err != nil {
		return 0, err
	}
	begun := time.Now()
	if _, err := e.db.pool.Exec(ctx, "select pg_notify($1, '')", outbox.Table{}.Channel()); err != nil {
		return 0, err
	}
	for recorded.Load() < int64(from+size) {
		if err := pause(ctx, time.Millisecond); err != nil {
			return 0, err
		}
		if time.Since(begun) > 2*time.Minute {
			return 0, fmt.Errorf("%d of %d messages are recorded", recorded.Load(), from+size)
		}
	}
	return float64(size) / time.Since(begun).Seconds(), nil
}
