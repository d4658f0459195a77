package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Severity says how bad a finding is.
type Severity string

const (
	OK      Severity = "ok"
	Warning Severity = "warning" // works, and worse than it could, or not for ever
	Broken  Severity = "broken"  // messages are lost from sight, late or refused until somebody acts
)

func (s Severity) rank() int {
	switch s {
	case Broken:
		return 2
	case Warning:
		return 1
	}
	return 0
}

// Finding is one thing that a check found. One that is ok has only a name and what is fine.
type Finding struct {
	// Name is that of the entry in docs/doctor.md or, when all is well, of the check.
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Why      string   `json:"why,omitempty"`
	// Mend is what to do, in words, and Commands what to run for it, in order and each by itself: SQL, or a command line
	// that begins with "relay ".
	Mend     string   `json:"mend,omitempty"`
	Commands []string `json:"commands,omitempty"`
}

// found makes a finding of the catalog.
func found(name, what string, commands ...string) Finding {
	k := catalog[name]
	return Finding{Name: name, Severity: k.severity, What: what, Why: k.why, Mend: k.mend, Commands: commands}
}

// Report is what an examination found, the worst first.
type Report struct {
	Table    string    `json:"table"`
	Broken   int       `json:"broken"`   // how many findings are broken
	Warnings int       `json:"warnings"` // how many are warnings
	Findings []Finding `json:"findings"`
}

func newReport(table string, findings []Finding) Report {
	r := Report{Table: table, Findings: findings}
	for _, f := range findings {
		switch f.Severity {
		case Broken:
			r.Broken++
		case Warning:
			r.Warnings++
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return b.Severity.rank() - a.Severity.rank() })
	return r
}

// WriteText writes the report for people. Commands stand on lines of their own, to be copied, SQL with its semicolon.
func (r Report) WriteText(w io.Writer) error {
	name := 0
	for _, f := range r.Findings {
		name = max(name, len(f.Name))
	}
	var b strings.Builder
	indent := strings.Repeat(" ", 2+len(Warning)+2+name)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", len(Warning), f.Severity, name, f.Name, f.What)
		if f.Severity == OK {
			continue
		}
		fmt.Fprintf(&b, "%swhy: %s\n%smend: %s\n", indent, f.Why, indent, f.Mend)
		for _, command := range f.Commands {
			if !strings.HasPrefix(command, "relay ") {
				command += ";" // several are pasted at once
			}
			fmt.Fprintf(&b, "%s  %s\n", indent, command)
		}
	}
	fmt.Fprintf(&b, "%s: broken %d, warnings %d, ok %d\n", r.Table, r.Broken, r.Warnings, len(r.Findings)-r.Broken-r.Warnings)
	_, err := io.WriteString(w, b.String())
	return err
}

// oneLine keeps a text of others from breaking the report's lines.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// literal quotes a text for SQL, whatever standard_conforming_strings says.
func literal(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "e" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// quote quotes a name for SQL.
func quote(name ...string) string { return pgx.Identifier(name).Sanitize() }

// span is a length of time for people. The server gives seconds, which may be infinite.
func span(seconds float64) time.Duration {
	const years = 1e9
	return time.Duration(min(seconds, years) * float64(time.Second)).Round(time.Second)
}
