package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed floor_claim.sql
var floorClaimSQL string

// floor is the least that can be done on the same table with the same indexes: one connection that waits for the trigger's
// NOTIFY, claims in one statement and calls the handler in the same goroutine. It records nothing, survives nothing and
// sends one at a time.
var floor = contender{
	name:  "raw floor",
	about: "bare pgx on our table: LISTEN, one claim statement, handler; nothing is recorded",
	open: func(ctx context.Context, db *database) (system, error) {
		if err := migrateOutbox(ctx, db, plainTrigger); err != nil {
			return nil, err
		}
		return &floorSystem{outboxSystem{db: db}}, nil
	},
}

type floorSystem struct{ outboxSystem }

func (s *floorSystem) start(ctx context.Context, handle handle) (stop func() error, err error) {
	conn, err := floorConn(ctx, s.db.dsn)
	if err != nil {
		return nil, err
	}
	// Its claims do not wait for the disk, as ours do not.
	if _, err := conn.Exec(ctx, "set synchronous_commit = off; listen "+outbox.Table{}.Channel()); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.loop(running, conn, handle) }()
	return func() error {
		cancel()
		err := <-ended
		if closed := conn.Close(context.WithoutCancel(ctx)); err == nil {
			err = closed
		}
		return err
	}, nil
}

// floorConn has the planner's settings of our own statements.
func floorConn(ctx context.Context, dsn string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, `set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off;
		set enable_hashjoin = off; set enable_mergejoin = off; set jit = off`)
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

func (s *floorSystem) loop(ctx context.Context, conn *pgx.Conn, handle handle) error {
	const limit = 100
	claim := sql.Fill(floorClaimSQL, outbox.Table{}.Names())
	for {
		for taken := limit; taken == limit; {
			taken = 0
			rows, err := conn.Query(ctx, claim, limit)
			if err != nil {
				return ended(ctx, err)
			}
			var data []byte
			_, err = pgx.ForEachRow(rows, []any{&data}, func() error {
				taken++
				at := time.Now()
				n, err := decode(data)
				if err == nil {
					handle(n, at)
				}
				return err
			})
			if err != nil {
				return ended(ctx, err)
			}
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return ended(ctx, err)
		}
	}
}

// ended is nil when err only says that ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// unfinished is false: the floor records nothing.
func (s *floorSystem) unfinished(context.Context) (bool, error) { return false, nil }

var (
	//go:embed floor_take.sql
	floorTakeSQL string
	//go:embed floor_record.sql
	floorRecordSQL string
)

// statementsAlone is the least that a drain can cost: claim 500 rows, record 500 rows, again and again on one connection,
// each in a transaction of its own. Nothing is decoded and nobody is called in between.
var statementsAlone = contender{
	name:  "two statements alone",
	about: "bare pgx on our table: claim 500, record 500, in a loop on one connection",
	open: func(ctx context.Context, db *database) (system, error) {
		if err := migrateOutbox(ctx, db, noTrigger); err != nil {
			return nil, err
		}
		return &statementsSystem{outboxSystem{db: db}}, nil
	},
}

type statementsSystem struct{ outboxSystem }

func (s *statementsSystem) start(ctx context.Context, handle handle) (stop func() error, err error) {
	conn, err := floorConn(ctx, s.db.dsn)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.loop(ctx, conn, handle) }()
	return func() error { return errors.Join(<-ended, conn.Close(context.WithoutCancel(ctx))) }, nil
}

// loop ends when nothing is left.
func (s *statementsSystem) loop(ctx context.Context, conn *pgx.Conn, handle handle) error {
	take, record := sql.Fill(floorTakeSQL, outbox.Table{}.Names()), sql.Fill(floorRecordSQL, outbox.Table{}.Names())
	for handled := 0; ; {
		rows, err := conn.Query(ctx, take, 500)
		if err != nil {
			return err
		}
		var (
			id     [16]byte
			lease  time.Time
			data   []byte
			ids    [][16]byte
			leases []time.Time
		)
		_, err = pgx.ForEachRow(rows, []any{&id, &lease, &data}, func() error {
			ids, leases = append(ids, id), append(leases, lease)
			return nil
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		now := time.Now()
		for range ids { // which ones does not matter: that each was taken once is seen in what is recorded
			handle(handled, now)
			handled++
		}
		tag, err := conn.Exec(ctx, record, ids, leases)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(ids)) {
			return fmt.Errorf("recorded %d rows of %d", tag.RowsAffected(), len(ids))
		}
	}
}
