package retention

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/retry"
)

// longestStep bounds one step of a purge, which takes milliseconds.
const longestStep = 30 * time.Second

// paced rests after each statement for as long as it took, so that a purge takes half of what one session can and leaves
// the rest, and vacuum, their turn.
type paced struct {
	pool *pgxpool.Pool
	took time.Duration
}

func (p *paced) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	if err := retry.Sleep(ctx, p.took); err != nil {
		return pgconn.CommandTag{}, err
	}
	limited, cancel := context.WithTimeout(ctx, longestStep)
	defer cancel()
	begun := time.Now()
	tag, err := p.pool.Exec(limited, statement, args...)
	p.took = time.Since(begun)
	return tag, err
}

func (p *paced) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	limited, cancel := context.WithTimeout(ctx, longestStep)
	return limitedRow{p.pool.QueryRow(limited, statement, args...), cancel}
}

// limitedRow lets go of its deadline once it is read.
type limitedRow struct {
	pgx.Row
	cancel context.CancelFunc
}

func (r limitedRow) Scan(into ...any) error {
	defer r.cancel()
	return r.Row.Scan(into...)
}
