package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/plural"
	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed due.sql
	dueSQL string
	//go:embed leases.sql
	leasesSQL string
	//go:embed channels.sql
	channelsSQL string
)

func (e *exam) due(ctx context.Context) (string, []Finding, error) {
	type oldest struct {
		Seconds float64
		Channel string
	}
	first, err := row[oldest](ctx, e.main, e.dueStatement())
	if errors.Is(err, pgx.ErrNoRows) {
		return "no message is due", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	what := fmt.Sprintf("the oldest due message, of channel %q, has waited for %v", first.Channel, span(first.Seconds))
	if span(first.Seconds) > e.opts.maxDueAge() {
		return "", []Finding{found("due-late", what)}, nil
	}
	return what, nil, nil
}

// dueStatement heeds the pauses if they can be read.
func (e *exam) dueStatement() string {
	names := maps.Clone(e.names)
	names["where_unpaused"] = ""
	if e.paused.readable {
		names["where_unpaused"] = "where " + names["unpaused"]
	}
	return sql.Fill(dueSQL, names)
}

func (e *exam) leases(ctx context.Context) (string, []Finding, error) {
	type counts struct{ Endless, Far int }
	n, err := row[counts](ctx, e.main, sql.Fill(leasesSQL, e.names))
	if err != nil {
		return "", nil, err
	}
	release := "update " + e.table.String() + " set bloqueado_hasta = now() where estado = 'procesando' and bloqueado_hasta "
	var all []Finding
	if n.Endless > 0 {
		all = append(all, found("lease-null", fmt.Sprintf("%s procesando without a lease", plural.Of(n.Endless, "message")), release+"is null"))
	}
	if n.Far > 0 {
		what := fmt.Sprintf("%s under a lease that ends in more than a day", plural.Of(n.Far, "message"))
		all = append(all, found("lease-far", what, release+"> now() + interval '1 day'"))
	}
	return "every lease ends, and within a day", all, nil
}

func (e *exam) channels(ctx context.Context) (string, []Finding, error) {
	if e.opts.Channels == nil {
		return "", nil, nil
	}
	type channel struct {
		Name     string
		Messages int
	}
	unserved, err := rows[channel](ctx, e.main, sql.Fill(channelsSQL, e.names), e.opts.Channels)
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	for _, c := range unserved {
		f := found("channel-unserved", fmt.Sprintf("channel %q has no sender: %d of the messages looked at", c.Name, c.Messages))
		if e.opts.LeaveUnknownChannels {
			f.Severity = Warning
		}
		all = append(all, f)
	}
	return "the channels of the messages looked at have senders", all, nil
}
