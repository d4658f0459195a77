package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// preflight finds what would keep this relay from ever sending: a log-in that the server refuses, a table that does not fit,
// a right that is missing. A database that is away is no reason, since the relay waits for it.
func (s *served) preflight(ctx context.Context) error {
	for channel, c := range s.Channels {
		if c.Sender == "print" {
			s.options.Log.Warn("messages are printed and marked as sent, nobody gets them", "channel", channel)
		}
	}
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	in, err := s.table.Inspect(limited, s.pool)
	if err == nil {
		if err := in.Fit(); err != nil {
			return err
		}
		err = s.granted(limited)
	}
	state := outbox.SQLState(err)
	switch {
	case err == nil, ctx.Err() != nil: // a signal
		return nil
	case strings.HasPrefix(state, "28"), state == "3D000": // refused by name and password, or there is no such database
		return fmt.Errorf("connect to %s: %w", s.Database, err)
	case errors.Is(err, errGrants):
		return err
	}
	s.options.Log.Warn("database is away, waiting for it", "err", describeDatabase(err))
	return nil
}

var errGrants = errors.New("a right is missing")

// granted returns an error that wraps errGrants if the role may not do what a relay does.
func (s *served) granted(ctx context.Context) error {
	role, missing, err := doctor.MissingGrants(ctx, s.pool, s.table, connectTimeout)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: the role %s needs: %s", errGrants, role, strings.Join(missing, "; "))
	}
	return nil
}

// describeDatabase is what a log may hold of an error: of one of the server's only its SQLSTATE, since its text may quote data.
func describeDatabase(err error) string {
	if state := outbox.SQLState(err); state != "" {
		return "SQLSTATE " + state
	}
	return describe(err)
}
