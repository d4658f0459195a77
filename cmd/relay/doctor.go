package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/internal/config"
)

type doctorCmd struct {
	jsonFlag
	EnqueueRole    []string      `help:"Roles that only enqueue, whose grants are looked at too." placeholder:"ROLE,..."`
	MaxDueAge      time.Duration `help:"How long ago the oldest due message may have fallen due. Default 5m." placeholder:"TIME"`
	MaxSnapshotAge time.Duration `help:"How long transactions of others may be open. Default 5m." placeholder:"TIME"`
	Timeout        time.Duration `help:"Bounds the examination of one outbox, at least 1s. Default 5s." placeholder:"TIME"`
}

// Run examines all outboxes, also when one of them is broken.
func (c *doctorCmd) Run(a *app) error {
	conf, err := a.config()
	if err != nil {
		return err
	}
	broken := 0
	for _, o := range conf.Outboxes {
		report, err := c.examine(a, o)
		if err != nil {
			return err
		}
		broken += report.Broken
		if err := c.print(a, o, report); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("broken: %d: do what mend says, and run relay doctor again", broken)
	}
	return nil
}

func (c *doctorCmd) examine(a *app, o config.Outbox) (doctor.Report, error) {
	conf, err := poolConfig(o)
	if err != nil {
		return doctor.Report{}, err
	}
	pool, err := pgxpool.NewWithConfig(a.ctx, conf) // without a ping: that there is no connection is a finding
	if err != nil {
		return doctor.Report{}, fmt.Errorf("%sconnect to %s: %w", prefix(o), o.Database, err)
	}
	defer pool.Close()
	as := o.RelayOptions()
	report, err := doctor.Examine(a.ctx, pool, o.OutboxTable(), doctor.Options{
		ListenDSN:            as.ListenDSN,
		Channels:             slices.Sorted(maps.Keys(o.Channels)), // nil without any: run needs to be told then
		LeaveUnknownChannels: as.LeaveUnknownChannels,
		EnqueueRoles:         c.EnqueueRole,
		Purge:                o.Retention != config.Retention{},
		MaxDueAge:            c.MaxDueAge,
		MaxSnapshotAge:       c.MaxSnapshotAge,
		Timeout:              c.Timeout,
	})
	for _, f := range report.Findings {
		for i, command := range f.Commands {
			if strings.HasPrefix(command, "relay ") {
				f.Commands[i] = command + a.givenFlags()
			}
		}
	}
	return report, err
}

func (c *doctorCmd) print(a *app, o config.Outbox, report doctor.Report) error {
	if c.JSON {
		return a.printJSON(struct {
			Outbox string `json:"outbox,omitempty"`
			doctor.Report
		}{o.Name, report})
	}
	if o.Name != "" {
		fmt.Fprintf(a.stdout, "outbox %s\n", o.Name)
	}
	return report.WriteText(a.stdout)
}

// givenFlags are the flags by which another command finds the same outbox. Not the database, which may hold a password.
func (a *app) givenFlags() (flags string) {
	given := maps.Clone(a.source.Flags)
	given["config"], given["outbox"] = a.source.File, a.source.Outbox
	delete(given, "database")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] != "" {
			flags += " --" + name + " " + shellWord(given[name])
		}
	}
	return flags
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_./:@-]+$`)

// shellWord quotes a word for a shell.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
