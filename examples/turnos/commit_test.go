package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

func TestCommitIsTimedFromItsAnswerAndNeverNegative(t *testing.T) {
	t.Parallel()
	at := time.Now()
	c := commit{sent: at.Add(-3 * time.Millisecond)}
	if c.before(at) != 3*time.Millisecond || c.after(at) != 0 {
		t.Errorf("unanswered: got %v and %v, want 3ms and 0", c.before(at), c.after(at))
	}
	c.answered = at.Add(-time.Millisecond)
	if c.after(at) != time.Millisecond || c.after(at.Add(-2*time.Millisecond)) != 0 {
		t.Errorf("answered: got %v and %v, want 1ms and 0", c.after(at), c.after(at.Add(-2*time.Millisecond)))
	}
}

func TestCommitIsTimedByItsTracer(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Tracer = commitTracer{}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var c commit
	var sending time.Time
	err = pgx.BeginFunc(timed(t.Context(), &c), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(timed(t.Context(), &c), "create table t (n integer)")
		sending = time.Now()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.sent.Before(sending) || !c.answered.After(c.sent) || c.answered.After(time.Now()) {
		t.Errorf("got sent %v and answered %v, want both in this order after %v", c.sent, c.answered, sending)
	}
}
