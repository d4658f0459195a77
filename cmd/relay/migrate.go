package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"1" help:"Bring the tables of all outboxes to the newest version. The default."`
	Down   migrateDownCmd   `cmd:"" help:"Remove what up added to one table; the table with its messages stays."`
	Status migrateStatusCmd `cmd:"" help:"Print the versions."`
	Print  migratePrintCmd  `cmd:"" help:"Print the SQL for one table, for another migration tool."`
}

type migrateUpCmd struct{}

func (*migrateUpCmd) Run(a *app) error { return a.migrate(migrate.Up) }

type migrateStatusCmd struct{}

func (*migrateStatusCmd) Run(a *app) error { return a.migrate(nil) }

type migrateDownCmd struct{}

func (*migrateDownCmd) Run(a *app) error {
	if _, err := a.outbox(); err != nil { // never all of them by an oversight
		return err
	}
	return a.migrate(migrate.Down)
}

type migratePrintCmd struct{}

func (*migratePrintCmd) Run(a *app) error {
	o, err := a.outbox()
	if err != nil {
		return err
	}
	script, err := migrate.SQL(o.OutboxTable())
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.stdout, script)
	return err
}

// migrate moves each outbox and prints its version.
func (a *app) migrate(move func(context.Context, *pgx.Conn, outbox.Table) error) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	for _, o := range c.Outboxes {
		if err := a.migrateOne(o, move); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) migrateOne(o config.Outbox, move func(context.Context, *pgx.Conn, outbox.Table) error) error {
	conn, err := a.conn(o)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(a.ctx))
	table := o.OutboxTable()
	differed, err := migrate.TriggerDiffers(a.ctx, conn, table)
	if err != nil {
		return err
	}
	var lost []string
	if move != nil {
		if lost, err = lostParts(a.ctx, conn, table); err != nil {
			return err
		}
		if err := move(a.ctx, conn, table); err != nil {
			return err
		}
	}
	version, newest, err := migrate.Status(a.ctx, conn, table)
	if err != nil {
		return err
	}
	about := ""
	switch {
	case version > newest:
		about = "; a newer release has updated it: update this program"
	case differed && move == nil:
		about = "; its trigger is not as this release makes it: run relay migrate up"
	case differed && version > 0:
		about = "; its trigger was not as this release makes it, and was made anew"
	}
	if len(lost) > 0 && version == newest {
		about += "; put back: " + strings.Join(lost, ", ")
	}
	_, err = fmt.Fprintf(a.stdout, "%s is at version %d of %d%s\n", table, version, newest, about)
	return err
}

// lostParts are what a table of the newest version lacks, and up puts back.
func lostParts(ctx context.Context, conn *pgx.Conn, t outbox.Table) (lost []string, err error) {
	version, newest, err := migrate.Status(ctx, conn, t)
	if outbox.SQLState(err) == "42501" { // up says what to do
		return nil, nil
	}
	if err != nil || version != newest {
		return nil, err
	}
	in, err := t.Inspect(ctx, conn)
	if err != nil {
		return nil, err
	}
	if !in.Exists {
		return []string{"the table"}, nil
	}
	valid := func(index *bool) bool { return index != nil && *index }
	for _, part := range []struct {
		name  string
		there bool
	}{
		{"the columns clave_orden and cabeceras", in.Optional()},
		{"the unique index on tenant and key", in.KeyIndex},
		{"the index on the due time", valid(in.DueIndex)},
		{"the index of what failed", valid(in.FailedIndex)},
		{"the table of pauses", in.Pauses},
		{"the trigger", in.Trigger != outbox.TriggerMissing},
	} {
		if !part.there {
			lost = append(lost, part.name)
		}
	}
	return lost, nil
}
