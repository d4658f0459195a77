package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/relay"
)

// relaysSuite measures several relays on one table: how fast they drain it together, whether they ever send a row twice,
// and how often they claim in vain when there is next to nothing to do.
func relaysSuite(ctx context.Context, b *bench) error {
	if err := b.measureRelays(ctx, scale(b, 3, 1), scale(b, 50_000, 20_000), 1, 2, 4, 8); err != nil {
		return err
	}
	return b.measureEmptyClaims(ctx, scale(b, 15, 5))
}

func (b *bench) measureRelays(ctx context.Context, rounds, n int, counts ...int) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	entries, drop, err := b.enter(ctx, s, oursTuned)
	if err != nil {
		return err
	}
	rates, twice := map[int][]float64{}, map[int]float64{}
	for round := range rounds {
		for _, count := range rotated(counts, round) {
			d, err := drain(ctx, entries[0], n, count, noWork)
			if err != nil {
				return fmt.Errorf("%d relays: %w", count, err)
			}
			rates[count] = append(rates[count], d.rate)
			twice[count] += float64(d.twice)
		}
	}
	for _, count := range counts {
		f := figure{suite: "relays", disk: s.disk, contender: entries[0].name, load: relaysLoad(count)}
		f.metric, f.unit = "rate", "msg/s"
		b.addRounds(f, rates[count])
		f.metric, f.unit, f.value = "sent twice", "messages", twice[count]
		b.add(f)
	}
	return drop()
}

func relaysLoad(count int) string { return fmt.Sprintf("%d relays", count) }

// idleRelays is how many relays wait for one insert a second.
const idleRelays = 30

// measureEmptyClaims counts what idle relays with default options ask of the database for each insert. It counts every
// claim, those of the fallback poll too, and tells how many of those there were.
func (b *bench) measureEmptyClaims(ctx context.Context, inserts int) error {
	s, err := b.plainDisk(ctx)
	if err != nil {
		return err
	}
	var claims, polls atomic.Int64
	idle := ours("ours", "30 relays, defaults", ownTrigger, relay.Options{Observer: relay.Observer{
		Claim: func(relay.Claim) { claims.Add(1) },
		Wake: func(cause notify.Cause) {
			if cause == notify.Poll {
				polls.Add(1)
			}
		},
	}})
	entries, drop, err := b.enter(ctx, s, idle)
	if err != nil {
		return err
	}
	e := entries[0]
	p := newProbe(inserts)
	stops := make([]func() error, idleRelays)
	for i := range stops {
		if stops[i], err = e.start(ctx, p.handle); err != nil {
			return err
		}
	}
	w, err := newWriters(ctx, e, 1)
	if err != nil {
		return err
	}
	if err := pause(ctx, 2*time.Second); err != nil { // until the claims of the start are over
		return err
	}
	claimsBefore, pollsBefore := claims.Load(), polls.Load()
	for n := range inserts {
		if err := w.write(ctx, 0, p, n); err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	f := figure{suite: "idle relays", disk: s.disk, contender: e.name, load: fmt.Sprintf("%d relays", idleRelays), unit: "per insert"}
	f.metric, f.value = "claims", float64(claims.Load()-claimsBefore)/float64(inserts)
	b.add(f)
	f.metric, f.value = "polls", float64(polls.Load()-pollsBefore)/float64(inserts)
	b.add(f)
	if err := p.waitFor(ctx, inserts, drainLimit); err != nil {
		return err
	}
	w.close(ctx)
	for _, stop := range stops {
		if err := stop(); err != nil {
			return err
		}
	}
	if err := p.exactlyOnce(inserts); err != nil {
		return err
	}
	return drop()
}
