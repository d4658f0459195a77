package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
)

// watermill-sql has two ways to keep messages in Postgres. The queue marks or deletes each message; the log, its default,
// only moves an offset past them: one write a batch, no state for each message, no retry of one without those behind it.
// Both hand out one message at a time and wait for its ack. They poll, so they take part in the throughput suite only.
var (
	watermillQueue = watermillContender("watermill queue, default", "PostgreSQLQueueSchema: batches of 100, messages are marked",
		wsql.PostgreSQLQueueSchema{}, wsql.PostgreSQLQueueOffsetsAdapter{}, watermillQueueLeft, "truncate watermill_reminders")
	watermillQueueTuned = watermillContender("watermill queue, tuned", "PostgreSQLQueueSchema: batches of 1,000, messages are deleted",
		wsql.PostgreSQLQueueSchema{SubscribeBatchSize: 1000}, wsql.PostgreSQLQueueOffsetsAdapter{DeleteOnAck: true},
		watermillQueueLeft, "truncate watermill_reminders")
	watermillLogTuned = watermillContender("watermill log, tuned", "DefaultPostgreSQLSchema: batches of 1,000, one offset for all",
		wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: 1000}, wsql.DefaultPostgreSQLOffsetsAdapter{},
		watermillLogLeft, "truncate watermill_reminders, watermill_offsets_reminders")
)

const (
	watermillTopic     = "reminders"
	watermillQueueLeft = "select exists (select from watermill_reminders where not acked)"
	watermillLogLeft   = `select coalesce((select max("offset") from watermill_reminders), 0) >
		coalesce((select max(offset_acked) from watermill_offsets_reminders), 0)`
)

func watermillContender(name, about string, schema wsql.SchemaAdapter, offsets wsql.OffsetsAdapter, left, empty string) contender {
	return contender{name: name, about: about, open: func(ctx context.Context, db *database) (system, error) {
		s := &watermillSystem{db: db, schema: schema, offsets: offsets, left: left, truncate: empty}
		subscriber, err := s.subscriber(wsql.BeginnerFromPgx(db.pool))
		if err != nil {
			return nil, err
		}
		return s, subscriber.SubscribeInitialize(watermillTopic)
	}}
}

type watermillSystem struct {
	db             *database
	schema         wsql.SchemaAdapter
	offsets        wsql.OffsetsAdapter
	left, truncate string
}

func (s *watermillSystem) subscriber(db wsql.Beginner) (*wsql.Subscriber, error) {
	return wsql.NewSubscriber(db, wsql.SubscriberConfig{SchemaAdapter: s.schema, OffsetsAdapter: s.offsets,
		PollInterval: 10 * time.Millisecond}, watermill.NopLogger{})
}

func (s *watermillSystem) insert(ctx context.Context, tx pgx.Tx, n int, at time.Time) error {
	if !at.IsZero() {
		return errors.New("watermill schedules nothing here")
	}
	return s.publish(tx, n, n+1)
}

func (s *watermillSystem) publish(tx pgx.Tx, from, to int) error {
	publisher, err := wsql.NewPublisher(wsql.TxFromPgx(tx), wsql.PublisherConfig{SchemaAdapter: s.schema}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	var messages []*message.Message
	for n := from; n < to; n++ {
		data, err := json.Marshal(newPayload(n))
		if err != nil {
			return err
		}
		messages = append(messages, message.NewMessage(strconv.Itoa(n), data))
	}
	return publisher.Publish(watermillTopic, messages...)
}

func (s *watermillSystem) fill(ctx context.Context, from, to int) error {
	return pgx.BeginFunc(ctx, s.db.pool, func(tx pgx.Tx) error {
		for ; from < to; from += 5000 {
			if err := s.publish(tx, from, min(from+5000, to)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *watermillSystem) start(ctx context.Context, handle handle) (stop func() error, err error) {
	pool, err := newPool(ctx, s.db.dsn)
	if err != nil {
		return nil, err
	}
	subscriber, err := s.subscriber(wsql.BeginnerFromPgx(pool))
	if err != nil {
		return nil, err
	}
	messages, err := subscriber.Subscribe(ctx, watermillTopic)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		for m := range messages {
			at := time.Now()
			n, err := decode(m.Payload)
			if err != nil {
				failed = fmt.Errorf("watermill: %w", err)
				m.Nack()
				continue
			}
			handle(n, at)
			m.Ack()
		}
	})
	return func() error {
		err := subscriber.Close()
		wg.Wait()
		pool.Close()
		return errors.Join(err, failed)
	}, nil
}

func (s *watermillSystem) unfinished(ctx context.Context) (left bool, err error) {
	err = s.db.pool.QueryRow(ctx, s.left).Scan(&left)
	return left, err
}

func (s *watermillSystem) empty(ctx context.Context) error {
	_, err := s.db.pool.Exec(ctx, s.truncate)
	return err
}
