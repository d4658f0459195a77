package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed trigger.sql
	triggerSQL string
	//go:embed replication_role.sql
	replicationRoleSQL string
)

type trigger struct {
	Enabled    string // O, R, D, A: see alter table
	Definition string
	Source     string
	Settings   []string // of the function
}

// rebuildTrigger puts the trigger back in two steps: relay migrate leaves one that is there alone.
func (e *exam) rebuildTrigger() []string {
	return []string{fmt.Sprintf("drop trigger %s on %s", e.names["trigger"], e.table), migrateUp}
}

func (e *exam) trigger(ctx context.Context) (string, []Finding, error) {
	t, err := row[trigger](ctx, e.main, triggerSQL, e.table.Schema, e.table.Name, strings.Trim(e.names["trigger"], `"`))
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
	body, definition := e.triggerText()
	switch {
	case t.Source == body && essence(t.Definition) == essence(definition) && strings.Join(t.Settings, ";") == "search_path=pg_catalog, pg_temp":
	case !strings.Contains(t.Source, e.table.Channel()):
		all = append(all, found("trigger-channel", "the trigger does not announce on "+e.table.Channel(), e.rebuildTrigger()...))
	case !e.otherVersion:
		all = append(all, found("trigger-changed", "the trigger or its function is not as this release makes it", e.rebuildTrigger()...))
	}
	return "the trigger is there, enabled and of this version", all, nil
}

// triggerText is what sql/triggers.sql says: the body of the function, and the definition of the trigger.
func (e *exam) triggerText() (body, definition string) {
	parts := strings.Split(sql.Fill(sql.Triggers, e.names), "$outbox$")
	_, definition, _ = strings.Cut(parts[2], ";")
	return parts[1], definition
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	noise   = strings.NewReplacer("or replace", "", "pg_catalog.", "", "::integer", "", "(", "", ")", "", `"`, "", "'", "", ";", "")
)

// essence is a definition without what the server writes otherwise than people do.
func essence(definition string) string {
	lower := strings.ToLower(comment.ReplaceAllString(definition, ""))
	return strings.Join(strings.Fields(noise.Replace(lower)), "")
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
