package sql

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

// ReadTrigger reads a Trigger.
//
//go:embed read_trigger.sql
var ReadTrigger string

// Trigger is what a database says of a wake-up trigger.
type Trigger struct {
	Enabled    string // O, R, D, A: see alter table
	Definition string
	Source     string
	Settings   []string // of the function
}

// Fits tells whether the trigger and its function are as Triggers makes them, enabled or not.
func (t Trigger) Fits(names Names) bool {
	parts := strings.Split(Triggers, "$outbox$") // before names are filled in, which may hold anything
	_, definition, _ := strings.Cut(parts[2], ";")
	definition = Fill(comment.ReplaceAllString(definition, ""), names)
	return t.Source == Fill(parts[1], names) && essence(t.Definition) == essence(definition) &&
		slices.Equal(t.Settings, []string{"search_path=pg_catalog, pg_temp"})
}

var (
	comment = regexp.MustCompile(`--[^\n]*`)
	noise   = strings.NewReplacer("or replace", "", "pg_catalog.", "", "::integer", "", "(", "", ")", "", `"`, "", "'", "", ";", "")
)

// essence is a definition without what the server writes otherwise than people do.
func essence(definition string) string {
	return strings.Join(strings.Fields(noise.Replace(strings.ToLower(definition))), "")
}
