package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/mafesoftware/outbox-relay/sql"
)

var (
	//go:embed indexes.sql
	indexesSQL string
	//go:embed claim_plan.sql
	claimPlanSQL string
)

type index struct {
	Name          string
	Valid, Unique bool
	Columns       []string // sorted
}

// indexes looks for the index on the due time by its name, as migrations do, and for the others by what they serve for:
// a table that another program made names them otherwise.
func (e *exam) indexes(ctx context.Context) (string, []Finding, error) {
	all, err := rows[index](ctx, e.main, indexesSQL, e.table.Schema, e.table.Name)
	if err != nil {
		return "", nil, err
	}
	findings, err := e.dueIndex(ctx, all)
	tenant := e.table.TenantColumn
	if !unique(all, tenant, "clave_idempotencia") {
		what := fmt.Sprintf("no valid index makes %s and clave_idempotencia unique", quote(tenant))
		findings = append(findings, found("key-index-missing", what, migrateUp))
	}
	if !unique(all, "id") {
		findings = append(findings, found("id-index-missing", "no valid index makes id unique",
			fmt.Sprintf("create unique index concurrently on %s (id)", e.table)))
	}
	if !slices.ContainsFunc(all, func(i index) bool { return i.Valid && i.Name == e.failedIndexName() }) {
		findings = append(findings, found("failed-index-missing", "there is no valid index "+e.failedIndexName(), migrateUp))
	}
	ours := []string{e.dueIndexName(), e.keyIndexName(), e.failedIndexName()}
	for _, i := range all {
		if !i.Valid && !slices.Contains(ours, i.Name) {
			findings = append(findings, found("index-invalid", "index "+quote(i.Name)+" is invalid", e.dropIndex(i.Name)))
		}
	}
	return "the claim, the key and the id have their indexes", findings, err
}

// unique tells whether a valid index makes these columns unique.
func unique(all []index, columns ...string) bool {
	slices.Sort(columns)
	return slices.ContainsFunc(all, func(i index) bool { return i.Valid && i.Unique && slices.Equal(i.Columns, columns) })
}

// The names of the definition's indexes hold nothing that would have to be quoted.
func (e *exam) dueIndexName() string    { return strings.Trim(e.names["due_index"], `"`) }
func (e *exam) keyIndexName() string    { return strings.Trim(e.names["key_index"], `"`) }
func (e *exam) failedIndexName() string { return strings.Trim(e.names["failed_index"], `"`) }

func (e *exam) dropIndex(name string) string {
	return "drop index concurrently " + quote(e.table.Schema, name)
}

// dueIndex asks the planner, and not for the text of the definition: that differs between versions of Postgres.
func (e *exam) dueIndex(ctx context.Context, all []index) ([]Finding, error) {
	name := e.dueIndexName()
	at := slices.IndexFunc(all, func(i index) bool { return i.Name == name })
	switch {
	case at < 0:
		return []Finding{found("due-index-missing", "there is no index "+name, migrateUp)}, nil
	case !all[at].Valid:
		return []Finding{found("due-index-invalid", "index "+name+" is invalid", migrateUp)}, nil
	}
	if e.self.Policies {
		return nil, nil // the plan is for what the policies leave, perhaps for nothing
	}
	plan, err := value[string](ctx, e.main, sql.Fill(claimPlanSQL, e.names))
	if err != nil {
		return nil, err
	}
	if !strings.Contains(plan, `"Index Name": "`+name+`"`) || strings.Contains(plan, `Sort"`) {
		return []Finding{found("due-index-other", "a claim does not go by index "+name, e.dropIndex(name), migrateUp)}, nil
	}
	return nil, nil
}
