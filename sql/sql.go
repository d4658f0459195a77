// Package sql holds the definition of an outbox table and fills identifiers into statements.
//
// The statements that read and write messages stand beside the Go code that runs them; here are only those that make the
// table. A statement is a text with placeholders such as {{table}}. They are for identifiers and expressions that differ
// from outbox to outbox; values are always parameters.
package sql

import (
	_ "embed"
	"strings"
)

// The definition, in the order in which it is built.
var (
	//go:embed schema.sql
	Schema string
	//go:embed version.sql
	Version string
	//go:embed table.sql
	Table string
	//go:embed columns.sql
	Columns string
	//go:embed key_index.sql
	KeyIndex string
	//go:embed due_index.sql
	DueIndex string
	//go:embed settings.sql
	Settings string
	//go:embed triggers.sql
	Triggers string
	//go:embed failed_index.sql
	FailedIndex string
	//go:embed pauses.sql
	Pauses string
)

// Names are the values of the placeholders, by name and without the braces.
type Names map[string]string

// Fill replaces each {{name}} in statement. A placeholder that names lacks stays as it is, and the server refuses it.
func Fill(statement string, names Names) string {
	pairs := make([]string, 0, 2*len(names))
	for name, value := range names {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(statement)
}
