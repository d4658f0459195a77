package sql_test

import (
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

func TestFillReplacesOnceAndLeavesWhatItDoesNotKnow(t *testing.T) {
	names := sql.Names{"table": `"{{tenant}}"."out{{table}}"`, "tenant": `"a"`}
	got := sql.Fill("select {{tenant}} from {{table}} where {{tenant}} = $1 and {{other}} and {tenant}", names)
	want := `select "a" from "{{tenant}}"."out{{table}}" where "a" = $1 and {{other}} and {tenant}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTableFillsEveryPlaceholderOfTheDefinition(t *testing.T) {
	for name, statement := range map[string]string{"schema": sql.Schema, "version": sql.Version, "table": sql.Table, "columns": sql.Columns,
		"key index": sql.KeyIndex, "due index": sql.DueIndex, "settings": sql.Settings, "triggers": sql.Triggers,
		"failed index": sql.FailedIndex, "pauses": sql.Pauses} {
		if got := sql.Fill(statement, outbox.Table{}.Names()); strings.TrimSpace(got) == "" || strings.Contains(got, "{{") {
			t.Errorf("%s: got %s, want each placeholder filled", name, got)
		}
	}
}
