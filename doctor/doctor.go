// Package doctor says what is wrong with an outbox and its database, why it matters, and what mends it.
//
//	report, err := doctor.Examine(ctx, pool, outbox.Table{}, doctor.Options{Channels: []string{"correo"}})
//	if err != nil {
//		return err
//	}
//	report.WriteText(os.Stdout)
//	if report.Broken > 0 { ... }
//
// It changes nothing, and may run at any time beside relays: each question is bounded by a second, the whole by five
// (see Options.Timeout), and none reads more of the table than some thousand rows. It opens up to four sessions of its own, the way the pool and
// the relay's listener open theirs. It needs no superuser; what it could not see becomes a finding, and stops nothing else.
//
// What it says holds neither recipients nor payloads, passwords or other sessions' statements.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// Options of an examination. The zero value works.
type Options struct {
	// ListenDSN is where the relay listens, as in relay.Options. Empty means where the pool connects to.
	ListenDSN string
	// Channels are those that the relay has senders for. Nil means not known: channels are not looked at.
	Channels []string
	// LeaveUnknownChannels is the relay's: messages of other channels are left to other relays.
	LeaveUnknownChannels bool
	// EnqueueRoles are roles that only enqueue, whose grants are to be looked at too.
	EnqueueRoles []string
	// Purge says that the pool's role also deletes finished messages.
	Purge bool
	// MaxDueAge is how long ago the oldest due message may have fallen due. Zero means 5 minutes; negative is invalid.
	MaxDueAge time.Duration
	// MaxSnapshotAge is how long transactions of others may be open. Zero means 5 minutes; negative is invalid.
	MaxSnapshotAge time.Duration
	// Timeout bounds the examination, and a fifth of it what one question may cost the server. Zero means 5 s; otherwise
	// at least 1 s.
	Timeout time.Duration
}

func (o Options) maxDueAge() time.Duration      { return cmp.Or(o.MaxDueAge, 5*time.Minute) }
func (o Options) maxSnapshotAge() time.Duration { return cmp.Or(o.MaxSnapshotAge, 5*time.Minute) }

func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, 5*time.Second) }

func (o Options) validate() error {
	if o.MaxDueAge < 0 {
		return fmt.Errorf("%w: Options.MaxDueAge must be positive, got %v", outbox.ErrInvalidOptions, o.MaxDueAge)
	}
	if o.MaxSnapshotAge < 0 {
		return fmt.Errorf("%w: Options.MaxSnapshotAge must be positive, got %v", outbox.ErrInvalidOptions, o.MaxSnapshotAge)
	}
	if o.timeout() < time.Second {
		return fmt.Errorf("%w: Options.Timeout must be at least 1s, got %v", outbox.ErrInvalidOptions, o.Timeout)
	}
	if o.ListenDSN != "" {
		if _, err := pgx.ParseConfig(o.ListenDSN); err != nil { // which quotes the string, and with it perhaps a password
			return fmt.Errorf("%w: Options.ListenDSN is not a Postgres connection string or URL", outbox.ErrInvalidOptions)
		}
	}
	return nil
}

// Examine looks at a table through the relay's pool, of which it uses only the configuration. The error wraps
// outbox.ErrInvalidOptions; everything else, a database that is away included, is a finding.
func Examine(ctx context.Context, pool *pgxpool.Pool, t outbox.Table, opts Options) (Report, error) {
	if err := t.Validate(); err != nil {
		return Report{}, err
	}
	if err := opts.validate(); err != nil {
		return Report{}, err
	}
	return newExam(pool, t, opts).report(ctx), nil
}

// exam is one examination. Its checks read what those before them have found out.
type exam struct {
	pool  *pgxpool.Pool
	table outbox.Table
	opts  Options
	names sql.Names
	now   func() time.Time
	// silence is how long a relay that watches may have said nothing.
	silence time.Duration

	limits limits
	main   *session
	who    who
	self   relation // once the table is known to exist
	// otherVersion says that the definition is of another release, whose trigger may differ.
	otherVersion bool
	paused       pauseTable
}

func newExam(pool *pgxpool.Pool, t outbox.Table, opts Options) *exam {
	t = t.WithDefaults()
	limits := newLimits(opts.timeout())
	names := t.Names()
	names["table_text"] = literal(t.String()) // for functions that take a name
	return &exam{pool: pool, table: t, opts: opts, names: names, now: time.Now, silence: maxSilence,
		limits: limits, main: &session{pool: pool, limits: limits}}
}

// check is one look. It gives what is wrong or, when nothing is, a few words on what is fine.
type check struct {
	name string
	look func(*exam, context.Context) (fine string, found []Finding, err error)
}

var (
	listenChecks = []check{{"listen", (*exam).listen}, {"pooler", (*exam).pooler}}
	serverChecks = []check{{"server", (*exam).server}, {"writable", (*exam).writable}, {"clock", (*exam).clock},
		{"settings", (*exam).settings}, {"connections", (*exam).connections}, {"queue", (*exam).queue},
		{"sight", (*exam).sight}, {"snapshots", (*exam).snapshots}, {"slots", (*exam).slots}, {"prepared", (*exam).prepared},
		{"autovacuum", (*exam).autovacuum}, {"relays", (*exam).relays}, {"locks", (*exam).locks}}
	tableChecks = []check{{"version", (*exam).version}, {"columns", (*exam).columns}, {"indexes", (*exam).indexes}, {"pauses", (*exam).pauses},
		{"trigger", (*exam).trigger}, {"replication-role", (*exam).replicationRole}, {"grants", (*exam).grants},
		{"enqueue-grants", (*exam).enqueueGrants}, {"vacuum", (*exam).vacuum}, {"due", (*exam).due},
		{"leases", (*exam).leases}, {"channels", (*exam).channels}}
)

func (e *exam) report(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, e.limits.whole)
	defer cancel()
	defer e.main.close()
	if err := e.identify(ctx); err != nil {
		return newReport(e.table.String(), []Finding{found("no-connection", reason(err))})
	}
	var heard []Finding
	var listening sync.WaitGroup
	listening.Go(func() { heard = e.run(ctx, listenChecks) }) // it waits, on sessions of its own
	server := e.run(ctx, serverChecks)
	table := e.run(ctx, []check{{"table", (*exam).relation}})
	if e.self.Kind != "" {
		table = append(table, e.run(ctx, tableChecks)...)
	}
	listening.Wait()
	return newReport(e.table.String(), slices.Concat(table, heard, server))
}

// run makes one check after the other. One that fails is a finding of its own.
func (e *exam) run(ctx context.Context, checks []check) (all []Finding) {
	for _, c := range checks {
		fine, findings, err := c.look(e, ctx)
		all = append(all, findings...)
		switch {
		case err != nil:
			all = append(all, e.unseen(c.name, err))
		case len(findings) == 0 && fine != "":
			all = append(all, Finding{Name: c.name, Severity: OK, What: fine})
		}
	}
	return all
}
