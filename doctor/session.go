package doctor

import (
	"context"
	_ "embed"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// sessionName is how others see the doctor in pg_stat_activity.
const sessionName = "outbox doctor"

// limits are how long things may take.
type limits struct {
	whole     time.Duration // the examination, less the closing of its sessions
	dial      time.Duration // the opening of a session
	statement time.Duration // a question, by the server
	answer    time.Duration // and until its answer is here
	echo      time.Duration // a notification
}

func newLimits(timeout time.Duration) limits {
	return limits{whole: timeout * 9 / 10, dial: timeout * 2 / 5, statement: timeout / 5, answer: timeout * 3 / 10, echo: timeout * 2 / 5}
}

//go:embed limits.sql
var limitsSQL string

// session is a connection as the pool or the relay's listener opens it. It is dialled when it is needed, and again after
// an answer that came too late.
type session struct {
	pool   *pgxpool.Pool
	dsn    string // empty: as the pool
	limits limits
	conn   *pgx.Conn
}

func (s *session) open(ctx context.Context) error {
	if s.conn != nil && !s.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.dial)
	defer cancel()
	config, err := notify.SessionConfig(ctx, s.pool, s.dsn)
	if err != nil {
		return err
	}
	// No prepared statements: a pooler in transaction mode may not know them.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = sessionName
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return err
	}
	if prepare := s.pool.Config().AfterConnect; prepare != nil && s.dsn == "" {
		if err := prepare(ctx, s.conn); err != nil {
			s.close()
			return err
		}
	}
	return nil
}

func (s *session) close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
	s.conn = nil
}

// ask reads rows into structs by the order of their fields, or into plain values. The statement runs behind limits.sql in
// the same round trip and transaction: settings of the session would stay behind in a pooler.
func ask[T any](ctx context.Context, s *session, into pgx.RowToFunc[T], statement string, args ...any) (all []T, err error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.answer)
	defer cancel()
	var b pgx.Batch
	b.Queue(limitsSQL, strconv.FormatInt(s.limits.statement.Milliseconds(), 10))
	b.Queue(statement, args...)
	answers := s.conn.SendBatch(ctx, &b)
	defer func() {
		if closed := answers.Close(); err == nil {
			err = closed
		}
	}()
	if _, err := answers.Exec(); err != nil {
		return nil, err
	}
	rows, err := answers.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, into)
}

// rows asks for structs.
func rows[T any](ctx context.Context, s *session, statement string, args ...any) ([]T, error) {
	return ask(ctx, s, pgx.RowToStructByPos[T], statement, args...)
}

// row asks for the one struct that a statement gives.
func row[T any](ctx context.Context, s *session, statement string, args ...any) (one T, err error) {
	all, err := rows[T](ctx, s, statement, args...)
	if err != nil {
		return one, err
	}
	if len(all) == 0 {
		return one, pgx.ErrNoRows
	}
	return all[0], nil
}

// value asks for one plain value.
func value[T any](ctx context.Context, s *session, statement string, args ...any) (one T, err error) {
	all, err := ask(ctx, s, pgx.RowTo[T], statement, args...)
	if err != nil {
		return one, err
	}
	if len(all) == 0 {
		return one, pgx.ErrNoRows
	}
	return all[0], nil
}

// reason says why something could not be done. Of an answer of the server's it has only the SQLSTATE: its text may quote
// data. That a session could not be opened it says in full, which names the host, the user and the database.
func reason(err error) string {
	state := outbox.SQLState(err)
	if refused, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return oneLine(refused.Error())
	}
	switch {
	case state == "42501":
		return "permission denied (SQLSTATE 42501)"
	case state == "57014":
		return "it took too long (SQLSTATE 57014)"
	case state == "55P03":
		return "somebody else has it locked (SQLSTATE 55P03)"
	case state != "":
		return "SQLSTATE " + state
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return oneLine(err.Error())
}
