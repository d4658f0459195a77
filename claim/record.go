package claim

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mafesoftware/outbox-relay/outbox"
)

var (
	//go:embed record_results.sql
	recordResultsSQL string
	//go:embed release.sql
	releaseSQL string
)

// lockTimeoutSQL bounds the wait for a row that a person holds in an open transaction, which must not hold up the results of
// the others.
const lockTimeoutSQL = ", set_config('lock_timeout', '250ms', true)"

// maxText bounds a provider's id, in characters.
const maxText = 1024

// Result is what became of one send.
type Result struct {
	Row         *Row
	MaxAttempts int           // of the row from now on; zero leaves it
	State       outbox.State  // Sent, Pending (again later), Failed or Discarded
	RetryIn     time.Duration // with Pending: the wait before the next attempt
	Category    string        // empty with Sent
	Code        string
	ExternalID  string
}

// Record writes results in one statement and tells for each whether the row was still ours. One that was not has been
// taken by another relay since and is left as that one wrote it. When another transaction holds one of the rows, nothing is
// written and the error has SQLSTATE 55P03.
func (s *Store) Record(ctx context.Context, results []Result) (ours []bool, err error) {
	n := len(results)
	ids, leases, states, waits := column[pgtype.UUID](n), column[pgtype.Timestamptz](n), column[pgtype.Text](n), column[pgtype.Int8](n)
	categories, codes, external, attempts := column[pgtype.Text](n), column[pgtype.Text](n), column[pgtype.Text](n), column[pgtype.Int4](n)
	for i := range results {
		r := &results[i]
		*ids[i], *leases[i] = fence(r.Row)
		*states[i] = storable(string(r.State))
		*waits[i] = pgtype.Int8{Int64: r.RetryIn.Milliseconds(), Valid: r.State == outbox.Pending}
		*categories[i], *codes[i] = storable(outbox.ShortCode(r.Category)), storable(outbox.ShortCode(r.Code))
		*external[i] = storable(r.ExternalID)
		*attempts[i] = pgtype.Int4{Int32: int32(r.MaxAttempts), Valid: true}
	}
	return s.fenced(ctx, "record results", s.record, n, ids, leases, states, waits, categories, codes, external, attempts)
}

// Release gives rows back unsent: pending, with the attempt given back and their place in line kept. It tells for each
// whether it was still ours.
func (s *Store) Release(ctx context.Context, rows []*Row) (ours []bool, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids, leases := column[pgtype.UUID](len(rows)), column[pgtype.Timestamptz](len(rows))
	for i, r := range rows {
		*ids[i], *leases[i] = fence(r)
	}
	return s.fenced(ctx, "release", s.release, len(rows), ids, leases, rows[0].Batch.Lease)
}

// fenced runs a statement that touches only rows which still carry their lease.
func (s *Store) fenced(ctx context.Context, what, statement string, n int, args ...any) (ours []bool, err error) {
	if n == 0 {
		return nil, nil
	}
	err = s.planned(ctx, plannerSQL+lockTimeoutSQL, statement, args, func(rows pgx.Rows) (err error) {
		ours, err = positions(rows, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s (n=%d): %w", what, n, err)
	}
	return ours, nil
}

// column makes a parameter of n values. Of the types that pgx knows in every mode, also in those that do not ask the server for
// types, those of pgtype by pointer are the ones that it writes without a copy of each.
func column[T any](n int) []*T {
	values, pointers := make([]T, n), make([]*T, n)
	for i := range values {
		pointers[i] = &values[i]
	}
	return pointers
}

// fence is what a row is known by while it is ours.
func fence(r *Row) (pgtype.UUID, pgtype.Timestamptz) {
	return pgtype.UUID{Bytes: r.ID, Valid: true}, pgtype.Timestamptz{Time: r.Lease, Valid: true}
}

// storable cuts s and takes out what a text column cannot hold: a write that fails would send the message again. Empty
// becomes null.
func storable(s string) pgtype.Text {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText])
	}
	return pgtype.Text{String: s, Valid: s != ""}
}
