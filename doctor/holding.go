package doctor

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/mafesoftware/outbox-relay/internal/plural"
)

var (
	//go:embed snapshots.sql
	snapshotsSQL string
	//go:embed slots.sql
	slotsSQL string
	//go:embed prepared.sql
	preparedSQL string
)

// sight says what the role cannot see: of other roles' sessions the server shows it only who they are.
func (e *exam) sight(context.Context) (string, []Finding, error) {
	if e.who.SeesAll {
		return "the role sees what all sessions do", nil, nil
	}
	return "", []Finding{found("unseen", "what sessions of other roles do: their open transactions, and whether they read notifications",
		"grant pg_monitor to "+quote(e.who.User))}, nil
}

func (e *exam) snapshots(ctx context.Context) (string, []Finding, error) {
	sessions, err := rows[suspect](ctx, e.main, snapshotsSQL, e.opts.maxSnapshotAge().Seconds(), sessionName)
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	for _, s := range sessions {
		all = append(all, found("old-snapshot", "a transaction is open: "+s.String(), end(s.PID)))
	}
	return fmt.Sprintf("no transaction that it sees is older than %v", e.opts.maxSnapshotAge()), all, nil
}

func (e *exam) slots(ctx context.Context) (string, []Finding, error) {
	type slot struct {
		Name, Kind string
		Active     bool
		Behind     int
		WAL        int64
	}
	slots, err := rows[slot](ctx, e.main, slotsSQL)
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	for _, s := range slots {
		what := fmt.Sprintf("%s slot %q holds back vacuum by %s and keeps %d MB of WAL", s.Kind, s.Name, plural.Of(s.Behind, "transaction"), s.WAL>>20)
		var commands []string
		if !s.Active {
			what += ", and nobody reads it"
			commands = append(commands, fmt.Sprintf("select pg_drop_replication_slot(%s)", literal(s.Name)))
		}
		all = append(all, found("replication-slot", what, commands...))
	}
	return "no replication slot is in the way", all, nil
}

func (e *exam) prepared(ctx context.Context) (string, []Finding, error) {
	type transaction struct {
		ID      string
		Seconds float64
	}
	transactions, err := rows[transaction](ctx, e.main, preparedSQL, e.opts.maxSnapshotAge().Seconds())
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	for _, t := range transactions {
		what := fmt.Sprintf("transaction %q was prepared %v ago", t.ID, span(t.Seconds))
		all = append(all, found("prepared-transaction", what, "rollback prepared "+literal(t.ID)))
	}
	return "no prepared transaction is left over", all, nil
}
