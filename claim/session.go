package claim

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Session takes rows on a connection of the caller's own, straight to the server. It is for one goroutine at a time.
type Session struct {
	Conn       *pgx.Conn
	store      *Store
	take, next *pgconn.StatementDescription
}

// NewSession gives a connection for good what Take sets for each claim. The server ends a statement that takes longer than
// limit, which is at most 5 s: a claim whose answer is not waited for would keep its rows until their lease ends.
func (s *Store) NewSession(ctx context.Context, conn *pgx.Conn, durable bool, limit time.Duration) (*Session, error) {
	settings := plannerSQL + fmt.Sprintf(", set_config('statement_timeout', '%d', true)", limit.Milliseconds())
	if !durable {
		settings += asyncCommitSQL
	}
	if _, err := conn.Exec(ctx, strings.ReplaceAll(settings, "true)", "false)")); err != nil {
		return nil, err
	}
	session := &Session{Conn: conn, store: s}
	var err error
	if session.take, err = conn.Prepare(ctx, s.takeOnly, s.takeOnly); err != nil {
		return nil, err
	}
	session.next, err = conn.Prepare(ctx, s.next, s.next)
	return session, err
}

// Take is Store.Take. It calls begin as soon as the claim is committed, and gives the batch once the next due time is known:
// both are asked for in one round trip, in a transaction each. When it fails after begin, it gives the batch with the error;
// an empty one tells nothing then.
// Of a claim that takes nothing, it is the second that tells the time and the snapshot, which is empty when something has
// fallen due since.
func (s *Session) Take(ctx context.Context, ask Ask, begin func(*Batch)) (*Batch, error) {
	b := &Batch{Lease: ask.Lease, TakenAt: time.Now()}
	p := s.Conn.PgConn().StartPipeline(ctx)
	err := s.ask(p, ask)
	if err == nil {
		err = receive(p, func(r *pgconn.ResultReader) error { return s.store.read(answer{ResultReader: r}, b) })
	}
	if err == nil {
		begin(b)
		b.Next = b.Now // look again, unless the answer says better
		err = receive(p, func(r *pgconn.ResultReader) error { return readNext(answer{ResultReader: r}, ask, b) })
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return b, fmt.Errorf("claim due (n=%d): %w", ask.Limit, err)
	}
	return b, nil
}

// ask sends both questions, each a transaction of its own.
func (s *Session) ask(p *pgconn.Pipeline, ask Ask) (err error) {
	var from, channels, horizon []byte
	if !ask.DueFrom.IsZero() {
		from = binary.BigEndian.AppendUint64(nil, uint64(ask.DueFrom.UnixMicro()-postgresEpoch))
	}
	if ask.Horizon > 0 {
		horizon = interval(ask.Horizon)
	}
	if ask.Channels != nil {
		if channels, err = s.Conn.TypeMap().Encode(pgtype.TextArrayOID, pgtype.BinaryFormatCode, ask.Channels, nil); err != nil {
			return err
		}
	}
	inBinary := []int16{pgtype.BinaryFormatCode}
	limit := binary.BigEndian.AppendUint32(nil, uint32(ask.Limit))
	p.SendQueryStatement(s.take, [][]byte{limit, interval(ask.Lease), from, channels}, inBinary, inBinary)
	p.SendPipelineSync()
	p.SendQueryStatement(s.next, [][]byte{channels, horizon, from}, inBinary, inBinary)
	return p.Sync()
}

// receive reads the answer to one question, and that its transaction is committed.
func receive(p *pgconn.Pipeline, read func(*pgconn.ResultReader) error) error {
	result, err := p.GetResults()
	if err != nil {
		return err
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("got %T for an answer", result)
	}
	if err := read(reader); err != nil {
		return err
	}
	_, err = p.GetResults() // the end of the transaction
	return err
}

func readNext(a answer, ask Ask, b *Batch) error {
	for a.Next() {
		f := a.fields()
		now, next := f.time(0), f.time(2)
		switch n := len(b.Rows) + len(b.Closed); {
		case n == 0:
			b.Now, b.Next = now, next
			if next.IsZero() || next.After(now) {
				b.Snapshot = string(f.values[1])
			}
		case n < ask.Limit:
			b.Next = next
		default:
			b.Next = time.Time{}
		}
	}
	return a.Err()
}

// answer is a result in binary.
type answer struct{ *pgconn.ResultReader }

func (a answer) Next() bool     { return a.NextRow() }
func (a answer) fields() fields { return fields{values: a.Values()} }
func (a answer) Err() error {
	_, err := a.Close()
	return err
}
