package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/plural"
)

//go:embed who.sql
var whoSQL string

// who is the role that the relay has, and the server that it talks to.
type who struct {
	User, Database string
	SeesAll        bool // the activity of other roles, too
	Version        int  // server_version_num
	VersionText    string
	Standby        bool
	Started        string // tells one server from another
}

func (e *exam) identify(ctx context.Context) (err error) {
	e.who, err = row[who](ctx, e.main, whoSQL)
	return err
}

// unseen says that a check could not be made.
func (e *exam) unseen(check string, err error, commands ...string) Finding {
	return found("unseen", check+": "+reason(err), commands...)
}

// alterRole is the command that changes a setting for the sessions of the relay's role in this database.
func (e *exam) alterRole(change string) string {
	return fmt.Sprintf("alter role %s in database %s %s", quote(e.who.User), quote(e.who.Database), change)
}

const oldestServer = 140000

func (e *exam) server(context.Context) (string, []Finding, error) {
	if e.who.Version < oldestServer {
		return "", []Finding{found("server-old", "Postgres "+e.who.VersionText)}, nil
	}
	return "Postgres " + e.who.VersionText, nil, nil
}

func (e *exam) writable(ctx context.Context) (string, []Finding, error) {
	if e.who.Standby {
		return "", []Finding{found("standby", "the server is a standby, in recovery")}, nil
	}
	settings, err := e.read(ctx, "default_transaction_read_only")
	if err != nil {
		return "", nil, err
	}
	if settings["default_transaction_read_only"] == "on" {
		return "", []Finding{found("read-only", "transactions of this role are read-only unless they say otherwise (default_transaction_read_only)",
			e.alterRole("set default_transaction_read_only = off"))}, nil
	}
	return "the server takes writes", nil, nil
}

//go:embed settings.sql
var settingsSQL string

func (e *exam) read(ctx context.Context, names ...string) (map[string]string, error) {
	type setting struct{ Name, Value string }
	all, err := rows[setting](ctx, e.main, settingsSQL, names)
	settings := map[string]string{}
	for _, s := range all {
		settings[s.Name] = s.Value
	}
	return settings, err
}

// settings looks at the timeouts that apply to the relay's role.
func (e *exam) settings(ctx context.Context) (string, []Finding, error) {
	limits := []struct {
		setting, finding string
		atLeast          time.Duration // less is a finding; zero: anything is
		better           string
	}{
		{"idle_session_timeout", "idle-timeout", 0, "0"},
		{"idle_in_transaction_session_timeout", "idle-timeout", time.Second, "'1min'"},
		{"statement_timeout", "statement-timeout", 5 * time.Second, "'30s'"},
		{"transaction_timeout", "statement-timeout", 5 * time.Second, "'30s'"}, // Postgres 17
	}
	var names []string
	for _, l := range limits {
		names = append(names, l.setting)
	}
	settings, err := e.read(ctx, names...)
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	for _, l := range limits {
		ms, _ := strconv.ParseInt(settings[l.setting], 10, 64) // unknown to this server: none
		limit := time.Duration(ms) * time.Millisecond
		if limit > 0 && (l.atLeast == 0 || limit < l.atLeast) {
			all = append(all, found(l.finding, fmt.Sprintf("%s is %v for this role", l.setting, limit),
				e.alterRole(fmt.Sprintf("set %s = %s", l.setting, l.better))))
		}
	}
	return "no timeout that would cut the relay", all, nil
}

// maxSkew is more than the hosts of one time server ever differ.
const maxSkew = time.Second

func (e *exam) clock(ctx context.Context) (string, []Finding, error) {
	before := e.now()
	theirs, err := value[time.Time](ctx, e.main, "select clock_timestamp()")
	after := e.now()
	if err != nil {
		return "", nil, err
	}
	skew := theirs.Sub(before.Add(after.Sub(before) / 2)).Round(time.Millisecond)
	if uncertain := after.Sub(before) / 2; skew.Abs() > maxSkew+uncertain {
		return "", []Finding{found("clock-skew", fmt.Sprintf("the database's clock is %v from this host's", skew))}, nil
	}
	return fmt.Sprintf("the database's clock is %v from this host's; the relay does not depend on it", skew), nil, nil
}

//go:embed connections.sql
var connectionsSQL string

// enoughConnections is what a relay and a few tools need.
const enoughConnections = 10

func (e *exam) connections(ctx context.Context) (string, []Finding, error) {
	type limit struct {
		What          string
		Used, Allowed int
	}
	limits, err := rows[limit](ctx, e.main, connectionsSQL)
	if err != nil {
		return "", nil, err
	}
	var all []Finding
	left := -1
	for _, l := range limits {
		if left < 0 || l.Allowed-l.Used < left {
			left = l.Allowed - l.Used
		}
		if l.Allowed-l.Used < enoughConnections {
			all = append(all, found("connections-few", fmt.Sprintf("%s: %d of %d are in use", l.What, l.Used, l.Allowed)))
		}
	}
	return plural.Of(left, "free connection"), all, nil
}
