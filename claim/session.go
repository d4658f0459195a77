package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// PrepareSession gives a session of the caller's own, straight to the server, for good what Take sets for each claim. The
// server ends a statement that takes longer than limit, which is at most 5 s: a claim whose answer is not waited for would
// keep its rows until their lease ends.
func (s *Store) PrepareSession(ctx context.Context, conn *pgx.Conn, durable bool, limit time.Duration) error {
	settings := plannerSQL + fmt.Sprintf(", set_config('statement_timeout', '%d', true)", limit.Milliseconds())
	if !durable {
		settings += asyncCommitSQL
	}
	_, err := conn.Exec(ctx, strings.ReplaceAll(settings, "true)", "false)"))
	return err
}

// TakeOn is Take on a session that was prepared. It calls begin as soon as the claim is committed, and gives the batch once
// the next due time is known: both are asked for in one round trip, in a transaction each.
func (s *Store) TakeOn(ctx context.Context, conn *pgx.Conn, ask Ask, begin func(*Batch)) (*Batch, error) {
	b := &Batch{Lease: ask.Lease, TakenAt: time.Now()}
	if err := s.takeOn(ctx, conn, ask, b, begin); err != nil {
		return nil, fmt.Errorf("claim due (n=%d): %w", ask.Limit, err)
	}
	return b, nil
}

func (s *Store) takeOn(ctx context.Context, conn *pgx.Conn, ask Ask, b *Batch, begin func(*Batch)) error {
	claim, err := prepare(ctx, conn, s.takeOnly, ask.args()...)
	if err != nil {
		return err
	}
	look, err := prepare(ctx, conn, s.next, ask.channels(), ask.horizon())
	if err != nil {
		return err
	}
	p := conn.PgConn().StartPipeline(ctx)
	claim.send(p)
	look.send(p)
	err = p.Flush()
	if err == nil {
		err = receive(p, conn, func(rows pgx.Rows) error { return s.read(rows, b) })
	}
	if err == nil {
		begin(b)
		err = receive(p, conn, func(rows pgx.Rows) error { return readNext(rows, ask, b) })
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	return err
}

func readNext(rows pgx.Rows, ask Ask, b *Batch) error {
	var next pgtype.Timestamptz
	_, err := pgx.ForEachRow(rows, []any{&next}, func() error { return nil })
	if len(b.Rows)+len(b.Closed) < ask.Limit {
		b.Next = finite(next)
	}
	return err
}

// question is a prepared statement with its parameters.
type question struct {
	statement *pgconn.StatementDescription
	values    pgx.ExtendedQueryBuilder
}

// prepare asks the server only the first time on a session.
func prepare(ctx context.Context, conn *pgx.Conn, statement string, args ...any) (q question, err error) {
	if q.statement, err = conn.Prepare(ctx, statement, statement); err != nil {
		return q, err
	}
	return q, q.values.Build(conn.TypeMap(), q.statement, args)
}

// send makes a transaction of its own of q.
func (q question) send(p *pgconn.Pipeline) {
	p.SendQueryStatement(q.statement, q.values.ParamValues, q.values.ParamFormats, q.values.ResultFormats)
	p.SendPipelineSync()
}

// receive reads the answer to one question, and that its transaction is committed.
func receive(p *pgconn.Pipeline, conn *pgx.Conn, read func(pgx.Rows) error) error {
	answer, err := p.GetResults()
	if err != nil {
		return err
	}
	rows, ok := answer.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("got %T for an answer", answer)
	}
	if err := read(pgx.RowsFromResultReader(conn.TypeMap(), rows)); err != nil {
		return err
	}
	_, err = p.GetResults() // the end of the transaction
	return err
}
