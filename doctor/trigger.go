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

//go:embed replication_role.sql
var replicationRoleSQL string

func (e *exam) trigger(ctx context.Context) (string, []Finding, error) {
	t, err := row[sql.Trigger](ctx, e.main, sql.ReadTrigger, e.table.Schema, e.table.Name, e.names["trigger"])
	if errors.Is(err, pgx.ErrNoRows) {
		return "", []Finding{found("trigger-missing", fmt.Sprintf("%s has no trigger %s", e.table, e.names["trigger"]), migrateUp)}, nil
	}
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	if t.Enabled == "D" || t.Enabled == "R" {
		what := map[string]string{"D": "the trigger is disabled", "R": "the trigger is enabled for replication only"}[t.Enabled]
		all = append(all, found("trigger-disabled", what, fmt.Sprintf("alter table %s enable trigger %s", e.table, e.names["trigger"])))
	}
	switch {
	case t.Fits(e.names):
	case !strings.Contains(t.Source, e.table.Channel()):
		all = append(all, found("trigger-channel", "the trigger does not announce on "+e.table.Channel(), migrateUp))
	case !e.otherVersion:
		all = append(all, found("trigger-changed", "the trigger or its function is not as this release makes it", migrateUp))
	}
	return "the trigger is there, enabled and of this version", all, nil
}

// replicationRole finds roles whose inserts do not fire the trigger.
func (e *exam) replicationRole(ctx context.Context) (string, []Finding, error) {
	type setting struct{ Role, Database string }
	settings, err := rows[setting](ctx, e.main, replicationRoleSQL)
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	for _, s := range settings {
		what, command := "sessions of all roles", "alter database "+quote(s.Database)
		switch {
		case s.Role != "" && s.Database != "":
			what, command = fmt.Sprintf("sessions of role %q", s.Role), fmt.Sprintf("alter role %s in database %s", quote(s.Role), quote(s.Database))
		case s.Role != "":
			what, command = fmt.Sprintf("sessions of role %q", s.Role), "alter role "+quote(s.Role)
		case s.Database == "":
			command = "alter role all"
		}
		all = append(all, found("replication-role", what+" begin with session_replication_role = replica", command+" reset session_replication_role"))
	}
	return "", all, nil
}
