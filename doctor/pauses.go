package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed pauses.sql
var pausesSQL string

// pauseTable is the table of pauses. Without it, or the right to read it, no pause is known.
type pauseTable struct{ there, readable bool }

func (e *exam) pauses(ctx context.Context) (string, []Finding, error) {
	name := strings.TrimPrefix(e.names["pause_table"], quote(e.table.Schema)+".")
	readable, err := value[bool](ctx, e.main, pausesSQL, e.table.Schema, strings.Trim(name, `"`))
	if errors.Is(err, pgx.ErrNoRows) {
		return "", []Finding{found("pauses-missing", "there is no table "+e.names["pause_table"], migrateUp)}, nil
	}
	if err != nil {
		return "", nil, err
	}
	e.paused = pauseTable{true, readable}
	if !readable {
		return "", nil, nil // see grants
	}
	type summary struct {
		Count   int
		Seconds float64
	}
	const ask = "select count(*)::integer, coalesce(extract(epoch from now() - min(creado_en)), 0)::float8 from {{pause_table}}"
	s, err := row[summary](ctx, e.main, sql.Fill(ask, e.names))
	if err != nil || s.Count == 0 {
		return "nothing is paused", nil, err
	}
	return fmt.Sprintf("pauses: %d, the oldest since %v", s.Count, span(s.Seconds)), nil, nil
}
