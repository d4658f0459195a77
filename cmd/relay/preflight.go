package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

//go:embed grants.sql
var grantsSQL string

// preflight finds what would keep this relay from ever sending: a log-in that the server refuses, a right that is missing.
// A database that is away is no reason, since the relay waits for it.
func (s *served) preflight(ctx context.Context) error {
	for channel, c := range s.Channels {
		if c.Sender == "print" {
			s.options.Log.Warn("messages are printed and marked as sent, nobody gets them", "channel", channel)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var role string
	var missing []string
	table := s.table.WithDefaults()
	err := s.pool.QueryRow(ctx, grantsSQL, table.Schema, table.Name).Scan(&role, &missing)
	state := outbox.SQLState(err)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // no table: the relay says what to do
		return nil
	case strings.HasPrefix(state, "28"), state == "3D000": // refused by name and password, or there is no such database
		return fmt.Errorf("connect to %s: %w", s.Database, err)
	case err != nil:
		s.options.Log.Warn("database is away, waiting for it", "err", describeDatabase(err))
		return nil
	case len(missing) > 0:
		return fmt.Errorf("the role %s lacks rights on %s: %s", role, s.table, strings.Join(missing, "; "))
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
