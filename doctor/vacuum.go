package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/mafesoftware/outbox-relay/sql"
)

//go:embed vacuum.sql
var vacuumSQL string

func (e *exam) autovacuum(ctx context.Context) (string, []Finding, error) {
	settings, err := e.read(ctx, "autovacuum", "track_counts")
	if err != nil {
		return "", nil, err
	}
	var commands []string
	for name, value := range settings {
		if value != "on" {
			commands = append(commands, "alter system set "+name+" = on")
		}
	}
	if len(commands) > 0 {
		return "", []Finding{found("autovacuum-off", "autovacuum does not run on this server", append(commands, "select pg_reload_conf()")...)}, nil
	}
	return "it runs on this server", nil, nil
}

// manyDead is far above the 2000 at which autovacuum sets out with this package's settings.
const manyDead = 50_000

func (e *exam) vacuum(ctx context.Context) (string, []Finding, error) {
	type state struct {
		Dead, Live int64
		Seconds    float64 // since the last vacuum, negative: none yet
	}
	s, err := row[state](ctx, e.main, vacuumSQL, e.table.Schema, e.table.Name)
	if err != nil {
		return "", nil, err
	}
	last := "no vacuum yet"
	if s.Seconds >= 0 {
		last = fmt.Sprintf("the last vacuum was %v ago", span(s.Seconds))
	}
	what := fmt.Sprintf("%d dead rows and %d live ones, %s", s.Dead, s.Live, last)
	var all []Finding
	if s.Dead > manyDead {
		all = append(all, found("dead-rows", what, "vacuum (analyze) "+e.table.String()))
	}
	if slices.Contains(e.self.Options, "autovacuum_enabled=false") || slices.Contains(e.self.Options, "autovacuum_enabled=off") {
		all = append(all, found("autovacuum-off", "autovacuum is switched off for the table", fmt.Sprintf("alter table %s reset (autovacuum_enabled)", e.table)))
	}
	if !slices.ContainsFunc(e.self.Options, func(o string) bool { return strings.HasPrefix(o, "autovacuum_vacuum_scale_factor=") }) {
		_, settings, _ := strings.Cut(sql.Fill(sql.Settings, e.names), "alter table")
		all = append(all, found("vacuum-settings", "the table has the server's scale factor for vacuum", "alter table"+" "+strings.TrimSuffix(oneLine(settings), ";")))
	}
	return what, all, nil
}
