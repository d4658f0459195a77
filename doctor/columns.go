package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed columns.sql
var columnsSQL string

// column is one of the table or of the definition.
type column struct {
	Name, Type string
	NotNull    bool
	Default    *string
	Filled     bool // by the server
}

var (
	columnLine = regexp.MustCompile(`(?m)^  (\S+) +([^\s,]+)( primary key)?( not null)?(?: default (.+?))?,?$`)
	castAtEnd  = regexp.MustCompile(`::[a-z "]+(\(\d+\))?$`)
)

// definition reads the columns of sql/table.sql, so that they stand nowhere twice.
func (e *exam) definition() (columns []column) {
	for _, m := range columnLine.FindAllStringSubmatch(sql.Table, -1) {
		c := column{Name: m[1], Type: m[2], NotNull: m[3] != "" || m[4] != ""}
		switch {
		case c.Name == "{{tenant}}":
			c.Name, c.Type = e.table.TenantColumn, string(e.table.TenantType)
		case c.Type == "timestamptz":
			c.Type = "timestamp with time zone" // as format_type writes it
		}
		if m[5] != "" {
			c.Default = &m[5]
		}
		columns = append(columns, c)
	}
	return columns
}

func (e *exam) columns(ctx context.Context) (string, []Finding, error) {
	all, err := rows[column](ctx, e.main, columnsSQL, e.table.Schema, e.table.Name)
	if err != nil {
		return "", nil, err
	}
	there := map[string]column{}
	for _, c := range all {
		there[c.Name] = c
	}
	var findings []Finding
	known := map[string]bool{"clave_orden": true, "cabeceras": true}
	for _, want := range e.definition() {
		known[want.Name] = true
		got, ok := there[want.Name]
		findings = append(findings, e.compare(got, ok, want)...)
	}
	for _, c := range all {
		if !known[c.Name] && c.NotNull && c.Default == nil && !c.Filled {
			what := fmt.Sprintf("column %s is not of the outbox, not null and without a default", quote(c.Name))
			findings = append(findings, found("column-required", what, e.alter(c.Name, "drop not null")))
		}
	}
	if there["clave_orden"].Type != "text" || there["cabeceras"].Type != "jsonb" {
		findings = append(findings, found("columns-optional", "clave_orden text and cabeceras jsonb are not both there", migrateUp))
	}
	return fmt.Sprintf("%d columns as they should be", len(known)), findings, nil
}

func (e *exam) alter(column, change string) string {
	return fmt.Sprintf("alter table %s alter column %s %s", e.table, quote(column), change)
}

// compare says what is wrong with one column.
func (e *exam) compare(got column, there bool, want column) (all []Finding) {
	name := quote(want.Name)
	if !there {
		return []Finding{found("column-missing", fmt.Sprintf("column %s is missing", name),
			fmt.Sprintf("alter table %s add column %s", e.table, want))}
	}
	if got.Type != want.Type && !(want.Type == "text" && strings.HasPrefix(got.Type, "character varying")) {
		all = append(all, found("column-type", fmt.Sprintf("column %s is %s, not %s", name, got.Type, want.Type),
			e.alter(want.Name, fmt.Sprintf("type %s using %s::%s", want.Type, name, want.Type))))
	}
	switch {
	case got.NotNull && !want.NotNull:
		all = append(all, found("column-not-null", fmt.Sprintf("column %s may not be null", name), e.alter(want.Name, "drop not null")))
	case !got.NotNull && want.NotNull:
		all = append(all, found("column-null", fmt.Sprintf("column %s may be null", name), e.alter(want.Name, "set not null")))
	}
	if want.Default != nil && !got.Filled && !defaultServes(got, want) {
		has := "no default"
		if got.Default != nil {
			has = "the default " + oneLine(*got.Default)
		}
		all = append(all, found("column-default", fmt.Sprintf("column %s has %s", name, has), e.alter(want.Name, "set default "+*want.Default)))
	}
	return all
}

// defaultServes: only where a message begins does the value itself matter.
func defaultServes(got, want column) bool {
	if got.Default == nil {
		return false
	}
	begins := want.Name == "estado" || want.Name == "intentos"
	return !begins || castAtEnd.ReplaceAllString(*got.Default, "") == *want.Default
}

// String is the column as create table writes it.
func (c column) String() string {
	s := quote(c.Name) + " " + c.Type
	if c.NotNull {
		s += " not null"
	}
	if c.Default != nil {
		s += " default " + *c.Default
	}
	return s
}
