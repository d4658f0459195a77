package credenciales

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// SQL returns a Lookup by a query, whose $1 is the tenant. No row means that the tenant has no credentials; two are an
// error, since either could be the wrong one.
//
// The function row makes credentials of a row: pgx.RowToStructByName[kapso.Credentials] if each column has the name of a
// field (api_key for APIKey) and each field a column, pgx.RowTo[string] for a single column, pgx.RowToMap, or one of your
// own that decrypts. Most of them cannot read null: coalesce(language, ”).
//
// The errors name the SQLSTATE and wrap the context's error. They have no text of the server or of row, which may quote a
// column. A nil pool or row, or an empty query, gives an error that wraps outbox.ErrInvalidOptions.
func SQL[C any](pool *pgxpool.Pool, query string, row pgx.RowToFunc[C]) (Lookup[C], error) {
	switch {
	case pool == nil:
		return nil, fmt.Errorf("%w: credenciales.SQL: pool must not be nil", outbox.ErrInvalidOptions)
	case strings.TrimSpace(query) == "":
		return nil, fmt.Errorf("%w: credenciales.SQL: query must not be empty", outbox.ErrInvalidOptions)
	case row == nil:
		return nil, fmt.Errorf("%w: credenciales.SQL: row must not be nil", outbox.ErrInvalidOptions)
	}
	return func(ctx context.Context, tenantID string) (c C, found bool, err error) {
		rows, err := pool.Query(ctx, query, tenantID)
		if err == nil {
			c, err = pgx.CollectExactlyOneRow(rows, row)
		}
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return c, false, nil
		case err != nil:
			return *new(C), false, fmt.Errorf("look up credentials (tenant=%s): %w", tenantID, withoutValues(ctx, err))
		}
		return c, true, nil
	}, nil
}

// withoutValues keeps of err what cannot quote a column: a server's message can (invalid input syntax for ...: "..."), and
// so can a column that does not fit its field.
func withoutValues(ctx context.Context, err error) error {
	var refused *pgconn.PgError
	var unreachable *pgconn.ConnectError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, pgx.ErrTooManyRows):
		return errors.New("the query gives more than one row")
	case errors.As(err, &unreachable):
		return unreachable
	case errors.As(err, &refused):
		return fmt.Errorf("SQLSTATE %s", refused.Code)
	}
	return errors.New("the connection was lost, or a row does not fit the credentials' type (a column without a field, null)")
}
