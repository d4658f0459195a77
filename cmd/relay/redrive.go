package main

import (
	"fmt"
	"math"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/internal/plural"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type redriveCmd struct {
	jsonFlag
	filterFlags
	changeFlags
	Rate float64 `help:"Most messages a second, 0 for no bound." default:"0" placeholder:"N"`
}

// changeFlags are for commands that change many messages.
type changeFlags struct {
	All bool `help:"All that can be changed, without a filter."`
	Yes bool `help:"Do it. Otherwise only print what would be done."`
}

// Run sends messages again, or says which it would.
func (c *redriveCmd) Run(a *app) error {
	if !(c.Rate >= 0) || math.IsInf(c.Rate, 0) {
		return fmt.Errorf("%w: --rate must be above 0 messages a second, or 0 for no bound, not %v", errUsage, c.Rate)
	}
	return c.run(a, c.filterFlags, c.JSON, "sent again", func(pool *pgxpool.Pool, table outbox.Table, opts admin.ChangeOptions) (admin.Result, error) {
		opts.Rate = c.Rate
		return admin.Redrive(a.ctx, pool, table, c.filter(), opts)
	})
}

// changed is what a change prints as JSON.
type changed struct {
	DryRun  bool `json:"dry_run"`
	Matched int  `json:"matched"`
	admin.Result
}

// run makes a change, or a dry run of it. done is what happens to the messages.
func (c changeFlags) run(a *app, f filterFlags, asJSON bool, done string,
	change func(*pgxpool.Pool, outbox.Table, admin.ChangeOptions) (admin.Result, error)) error {
	if f.empty() && !c.All {
		return fmt.Errorf("%w: say which messages by a filter such as --state or --id, or --all", errUsage)
	}
	if !f.empty() && c.All {
		return fmt.Errorf("%w: --all and a filter exclude each other", errUsage)
	}
	return a.withTable(f.filter(), func(pool *pgxpool.Pool, table outbox.Table) error {
		total := 0
		if c.Yes && isTerminal(a.stderr) { // the bar needs to know
			r, err := c.step(a, pool, table, true, 0, change)
			if err != nil {
				return err
			}
			total = r.Matched()
		}
		r, err := c.step(a, pool, table, !c.Yes, total, change)
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(changed{!c.Yes, r.Matched(), r})
		}
		return c.print(a, r, done)
	})
}

// step is the change or its dry run, with a bar.
func (c changeFlags) step(a *app, pool *pgxpool.Pool, table outbox.Table, dry bool, total int,
	change func(*pgxpool.Pool, outbox.Table, admin.ChangeOptions) (admin.Result, error)) (admin.Result, error) {
	bar := a.progress("messages", total)
	defer bar.end()
	return change(pool, table, admin.ChangeOptions{DryRun: dry, Progress: func(r admin.Result) { bar.draw(r.Matched()) }})
}

func (c changeFlags) print(a *app, r admin.Result, done string) error {
	if len(r.Groups) > 0 {
		out := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, "STATE\tCHANNEL\tFAILURE\tMESSAGES")
		for _, g := range r.Groups {
			failure := ""
			if g.Category != "" {
				failure = g.Category + "/" + g.Code
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%d\n", g.State, printable(g.Channel), printable(failure), g.Messages)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if c.Yes {
		fmt.Fprintf(a.stdout, "%s %s", plural.Of(r.Changed, "message"), done)
	} else {
		fmt.Fprintf(a.stdout, "dry run: %s would be %s", plural.Of(r.Matched(), "message"), done)
	}
	if r.Leased > 0 {
		fmt.Fprintf(a.stdout, "; %d %s held by a relay under a valid lease", r.Leased, plural.Pick(r.Leased, "is", "are"))
	}
	if r.Held > 0 {
		fmt.Fprintf(a.stdout, "; %d %s locked: try again", r.Held, plural.Pick(r.Held, "has changed or is", "have changed or are"))
	}
	if !c.Yes && r.Matched() > 0 {
		fmt.Fprint(a.stdout, "; --yes does it")
	}
	_, err := fmt.Fprintln(a.stdout)
	return err
}
