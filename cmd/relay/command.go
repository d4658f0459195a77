package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const usage = `relay sends the messages of an outbox table.

  relay migrate [up|down|status|print]   build or update the table; print writes its SQL to standard output
  relay run                              send until SIGINT or SIGTERM; a second one ends it at once.
                                         This version prints each message and marks it as sent: it is for trying
                                         things out, never for a table that another relay serves.

The database is the one in DATABASE_URL. Flags, after the command:
  --schema public   --table outbox   --tenant-column organizacion_id   --tenant-type uuid|text
  --channels correo,whatsapp,...     (run, required) the channels to print; messages of others are left alone
`

var errUsage = errors.New("usage")

// command runs one command line and gives the exit code: 0 done, 1 failed, 2 wrong usage.
func command(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, env, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage), errors.Is(err, outbox.ErrInvalidOptions):
		fmt.Fprintf(stderr, "relay: %v; see relay help\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "relay: %v\n", err)
	return 1
}

func dispatch(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: name a command: migrate or run", errUsage)
	}
	name, args := args[0], args[1:]
	action := "up"
	if name == "migrate" && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		action, args = args[0], args[1:]
	}
	var table outbox.Table
	var tenantType, channels string
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&table.Schema, "schema", "", "")
	flags.StringVar(&table.Name, "table", "", "")
	flags.StringVar(&table.TenantColumn, "tenant-column", "", "")
	flags.StringVar(&tenantType, "tenant-type", "", "")
	if name == "run" {
		flags.StringVar(&channels, "channels", "", "")
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp), name == "help", name == "--help", name == "-h":
		fmt.Fprint(stdout, usage)
		return nil
	case err != nil:
		return fmt.Errorf("%w: %v", errUsage, err)
	case flags.NArg() > 0:
		return fmt.Errorf("%w: unexpected %q", errUsage, flags.Arg(0))
	}
	table.TenantType = outbox.TenantType(tenantType)
	if err := table.Validate(); err != nil {
		return err
	}
	switch name {
	case "migrate":
		return migrateTable(ctx, action, table, env, stdout)
	case "run":
		if channels == "" {
			return fmt.Errorf("%w: run needs --channels, the channels whose messages are printed and marked as sent", errUsage)
		}
		return run(ctx, table, strings.Split(channels, ","), env, stdout, stderr)
	}
	return fmt.Errorf("%w: unknown command %q", errUsage, name)
}

func databaseURL(env func(string) string) (string, error) {
	if dsn := env("DATABASE_URL"); dsn != "" {
		return dsn, nil
	}
	return "", errors.New("DATABASE_URL is not set: give the connection string of the database, such as postgres://user@host/database")
}

func migrateTable(ctx context.Context, action string, table outbox.Table, env func(string) string, stdout io.Writer) error {
	switch action {
	case "up", "down", "status":
	case "print":
		script, err := migrate.SQL(table)
		if err != nil {
			return err
		}
		_, err = io.WriteString(stdout, script)
		return err
	default:
		return fmt.Errorf("%w: migrate knows up, down, status and print, not %q", errUsage, action)
	}
	dsn, err := databaseURL(env)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to the database in DATABASE_URL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	switch action {
	case "up":
		err = migrate.Up(ctx, conn, table)
	case "down":
		err = migrate.Down(ctx, conn, table)
	}
	if err != nil {
		return err
	}
	version, newest, err := migrate.Status(ctx, conn, table)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s is at version %d of %d\n", table, version, newest)
	return nil
}

func run(ctx context.Context, table outbox.Table, channels []string, env func(string) string, stdout, stderr io.Writer) error {
	dsn, err := databaseURL(env)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer pool.Close()
	senders := relay.Senders{}
	for _, channel := range channels {
		senders[strings.TrimSpace(channel)] = transporte.Print(stdout)
	}
	return relay.Run(ctx, pool, table, senders, relay.Options{
		LeaveUnknownChannels: true, // printing must not discard what a real relay could send
		Log:                  slog.New(slog.NewTextHandler(stderr, nil)),
	})
}
