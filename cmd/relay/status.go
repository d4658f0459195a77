package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type statusCmd struct{ jsonFlag }

// Run prints how an outbox stands.
func (c *statusCmd) Run(a *app) error {
	return a.withTable(admin.Filter{}, func(pool *pgxpool.Pool, table outbox.Table) error {
		s, err := admin.Look(a.ctx, pool, table)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(s)
		}
		return a.printStatus(s)
	})
}

func (a *app) printStatus(s admin.Status) error {
	out := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(s.Counts) == 0 {
		fmt.Fprintf(a.stdout, "%s is empty\n", s.Table)
	} else {
		fmt.Fprintln(out, "STATE\tCHANNEL\tMESSAGES\tDUE\tOLDEST DUE\tPAUSED\t")
	}
	estimated := false
	for _, c := range s.Counts {
		about := ""
		if c.Estimated {
			about, estimated = "~", true
		}
		due, age, paused := "", "", ""
		if c.Due > 0 {
			due, age = fmt.Sprint(about, c.Due), seconds(c.OldestDue)
		}
		if c.Paused > 0 {
			paused = fmt.Sprint(about, c.Paused)
		}
		fmt.Fprintf(out, "%s\t%s\t%s%d\t%s\t%s\t%s\t\n", c.State, printable(c.Channel), about, c.Messages, due, age, paused)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	atLeast := ""
	if s.AtLeast {
		atLeast = "at least "
	}
	fmt.Fprintf(a.stdout, "due: %d, the oldest for %s\n", s.Due, seconds(s.OldestDue))
	fmt.Fprintf(a.stdout, "last minute: %s%s\nlast hour: %s%s\n", atLeast, rates(s.LastMinute), atLeast, rates(s.LastHour))
	if estimated {
		fmt.Fprintln(a.stdout, "~ is an estimate")
	}
	return a.printPauses(s.Pauses)
}

func rates(r admin.Rates) string {
	return fmt.Sprintf("%d enqueued, %d sent, %d failed", r.Enqueued, r.Sent, r.Failed)
}

// seconds is a duration for people: to the tenth of a second below a minute, to the second above.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
