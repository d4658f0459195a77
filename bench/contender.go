package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// contender is one way from a committed transaction to a handler.
type contender struct {
	name  string
	about string // what it is and how it is set up, for the page
	open  func(context.Context, *database) (system, error)
}

// system is a contender in a database of its own.
type system interface {
	// insert writes message n within tx as an application does. at is zero for a message that is due now.
	insert(ctx context.Context, tx pgx.Tx, n int, at time.Time) error
	// fill writes messages [from, to), due now, and tells nobody.
	fill(ctx context.Context, from, to int) error
	// start runs the consumer until stop, which returns when it has ended. handle is called when a handler begins, by
	// several goroutines at once. start returns once the consumer is ready.
	start(ctx context.Context, handle handle) (stop func() error, err error)
	// unfinished tells whether a message is left that is not recorded as done.
	unfinished(ctx context.Context) (bool, error)
	// empty deletes all messages.
	empty(ctx context.Context) error
}

// handle takes the number of a message and the moment at which its handler began.
type handle func(n int, at time.Time)

// payload is the content of every message, about 170 bytes of JSON.
type payload struct {
	N       int    `json:"n"`
	Name    string `json:"name"`
	When    string `json:"when"`
	Address string `json:"address"`
	Text    string `json:"text"`
}

func newPayload(n int) payload {
	return payload{N: n, Name: "Ana Benítez", When: "2026-03-14T10:00:00-03:00", Address: "Av. Corrientes 1234, Buenos Aires",
		Text: "Your appointment is tomorrow at ten."}
}

// decode is what every handler does with the payload that reaches it as JSON.
func decode(data []byte) (n int, err error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return 0, fmt.Errorf("decode a payload: %w", err)
	}
	return p.N, nil
}

// entry is a contender that takes part in a suite.
type entry struct {
	contender
	system
	db *database
}

// enter opens contenders on a server, each in a database of its own. close drops them.
func (b *bench) enter(ctx context.Context, s *server, contenders ...contender) (entries []*entry, close func() error, err error) {
	close = func() error {
		var err error
		for _, e := range entries {
			err = errors.Join(err, e.db.close(ctx))
		}
		return err
	}
	b.entered = append(b.entered, contenders...)
	for _, c := range contenders {
		db, err := s.database(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, close())
		}
		entries = append(entries, &entry{contender: c, db: db})
		if entries[len(entries)-1].system, err = c.open(ctx, db); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", c.name, err), close())
		}
	}
	return entries, close, nil
}

// rotated gives all from the one whose turn it is to begin a round.
func rotated[T any](all []T, round int) []T {
	k := round % len(all)
	return slices.Concat(all[k:], all[:k])
}
