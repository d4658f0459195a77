package doctor

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed queue.sql
var queueSQL string

// suspect is a session that others should know of.
type suspect struct {
	PID     int
	User    string
	State   string
	Seconds float64
}

func (s suspect) String() string {
	return fmt.Sprintf("pid %d of role %q, %s, for %v", s.PID, s.User, s.State, span(s.Seconds))
}

// end is the command that ends the session.
func end(pid int) string { return fmt.Sprintf("select pg_terminate_backend(%d)", pid) }

// queueFinding says how bad a usage of the queue is, a share of 1. It is all but empty while everybody reads.
func queueFinding(usage float64) string {
	switch {
	case usage >= 0.5:
		return "queue-full"
	case usage >= 0.01:
		return "queue-filling"
	}
	return ""
}

func (e *exam) queue(ctx context.Context) (string, []Finding, error) {
	usage, err := value[float64](ctx, e.main, "select pg_notification_queue_usage()")
	if err != nil {
		return "", nil, err
	}
	what := fmt.Sprintf("the notification queue is %.1f %% full", usage*100)
	name := queueFinding(usage)
	if name == "" {
		return what, nil, nil
	}
	suspects, err := rows[suspect](ctx, e.main, queueSQL)
	var commands []string
	for _, s := range suspects {
		what += "; suspect: " + s.String()
		commands = append(commands, end(s.PID))
	}
	return "", []Finding{found(name, what, commands...)}, err
}
