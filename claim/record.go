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
	Row         Row
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
	in := struct {
		ids                         []pgtype.UUID
		leases                      []time.Time
		states                      []string
		waits                       []*int64
		attempts                    []int32
		categories, codes, external []*string
	}{ids: make([]pgtype.UUID, n), leases: make([]time.Time, n), states: make([]string, n), waits: make([]*int64, n), attempts: make([]int32, n),
		categories: make([]*string, n), codes: make([]*string, n), external: make([]*string, n)}
	for i, r := range results {
		in.ids[i], in.leases[i], in.states[i] = pgUUID(r.Row.ID), r.Row.Lease, string(r.State)
		in.attempts[i] = int32(r.MaxAttempts)
		if r.State == outbox.Pending {
			ms := r.RetryIn.Milliseconds()
			in.waits[i] = &ms
		}
		in.categories[i], in.codes[i], in.external[i] = storable(outbox.ShortCode(r.Category)), storable(outbox.ShortCode(r.Code)), storable(r.ExternalID)
	}
	return s.fenced(ctx, "record results", s.record, n,
		in.ids, in.leases, in.states, in.waits, in.categories, in.codes, in.external, in.attempts)
}

// Release gives rows back unsent: pending, with the attempt given back and their place in line kept. It tells for each
// whether it was still ours.
func (s *Store) Release(ctx context.Context, rows []Row) (ours []bool, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids, leases := make([]pgtype.UUID, len(rows)), make([]time.Time, len(rows))
	for i, r := range rows {
		ids[i], leases[i] = pgUUID(r.ID), r.Lease
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

// pgUUID is an id as pgx knows it in every mode, also in those that do not ask the server for types.
func pgUUID(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// storable cuts s and takes out what a text column cannot hold: a write that fails would send the message again. Empty
// becomes null.
func storable(s string) *string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if s == "" {
		return nil
	}
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText])
	}
	return &s
}
