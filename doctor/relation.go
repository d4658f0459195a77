package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

//go:embed relation.sql
var relationSQL string

// relation is what the catalog has of the table, besides its columns, indexes and triggers.
type relation struct {
	Kind, Persistence string
	Options           []string // storage settings
	Policies          bool     // row security hides rows from the relay's role
}

func (e *exam) relation(ctx context.Context) (string, []Finding, error) {
	self, err := row[relation](ctx, e.main, relationSQL, e.table.Schema, e.table.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", []Finding{found("table-missing", "there is no table "+e.table.String(), migrateUp)}, nil
	}
	if err != nil {
		return "", nil, err
	}
	e.self = self
	var all []Finding
	if self.Kind == "p" {
		all = append(all, found("table-partitioned", e.table.String()+" is partitioned"))
	}
	if self.Persistence == "u" {
		all = append(all, found("table-unlogged", e.table.String()+" is unlogged", "alter table "+e.table.String()+" set logged"))
	}
	if self.Policies {
		all = append(all, found("row-security", fmt.Sprintf("row security of %s applies to role %q", e.table, e.who.User),
			fmt.Sprintf("create policy outbox_relay on %s to %s using (true) with check (true)", e.table, quote(e.who.User))))
	}
	return e.table.String() + " exists", all, nil
}

// version compares the definition with this release's.
func (e *exam) version(ctx context.Context) (string, []Finding, error) {
	if err := e.main.open(ctx); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.limits.answer)
	defer cancel()
	version, newest, err := migrate.Status(ctx, e.main.conn, e.table)
	if outbox.SQLState(err) == "42501" {
		e.otherVersion = true // for all that is known
		grant := fmt.Sprintf("grant select on %s to %s", e.names["version_table"], quote(e.who.User))
		return "", []Finding{e.unseen("version", err, grant)}, nil
	}
	if err != nil {
		return "", nil, err
	}
	what := fmt.Sprintf("the definition is at version %d of %d", version, newest)
	switch {
	case version < newest:
		e.otherVersion = true
		return "", []Finding{found("version-old", what, migrateUp)}, nil
	case version > newest:
		e.otherVersion = true
		return "", []Finding{found("version-new", what)}, nil
	}
	return what, nil, nil
}
