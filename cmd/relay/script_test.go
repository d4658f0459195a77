package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
)

// patience bounds every wait for something that must happen.
const patience = time.Minute

// TestMain makes this binary the command itself when a script runs relay.
func TestMain(m *testing.M) {
	testscript.Main(withServer{m}, map[string]func(){"relay": main})
}

// withServer stops the server after the tests, and leaves the exit to testscript.
type withServer struct{ *testing.M }

func (w withServer) Run() int { return pgtest.Run(w.M) }

// TestScripts runs testdata/*.txtar, each with an empty database in DATABASE_URL. Besides testscript's own they have the
// commands:
//
//	exits CODE COMMAND... runs a command that must end with this code
//	script FILE           runs the statements of a file
//	sql STATEMENT...      runs each and prints what it gives, columns with a bar between them
//	await WANT STATEMENT  runs it until it prints WANT
//	dsn NAME              has $DATABASE_URL lead to another database of the server
//	role                  has $DATABASE_URL log in as a new role without rights, $ROLE
//	logged FILE PATTERN   waits until a file has a match
//	receiver, mailbox     start a receiver of webhooks at $RECEIVER, whose secret is $SECRET, or a mail server at $MAILBOX
//	hold, let             have what arrives there wait for its answer, and let it go
//	received N            waits for N messages there and prints them
//	signal NAME           sends a signal to what runs in the background
//	server start          gives the script a database server of its own; server kill, server restart
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values["values"] = map[string]any{"t": env.T()}
			env.Setenv("DATABASE_URL", pgtest.Database(env.T().(testing.TB)))
			env.Setenv("SECRET", secret)
			env.Setenv("RELAY_HTTP_ADDRESS", "127.0.0.1:0") // scripts run side by side
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sql": sqlCommand, "script": scriptCommand, "await": awaitCommand, "exits": exitsCommand, "logged": loggedCommand, "dsn": dsnCommand, "role": roleCommand, "signal": signalCommand, "server": serverCommand,
			"receiver": receiverCommand, "mailbox": mailboxCommand, "hold": holdCommand, "let": letCommand, "received": receivedCommand,
		},
	})
}

func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	for _, statement := range args {
		answer, err := ask(ts, statement)
		if (err != nil) != neg {
			ts.Fatalf("%s: %v", statement, err)
		}
		fmt.Fprint(ts.Stdout(), answer)
	}
}

func awaitCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await WANT STATEMENT")
	}
	var answer string
	var err error
	if !waitfor.Within(patience, func() bool {
		answer, err = ask(ts, args[1])
		return err == nil && strings.TrimSpace(answer) == args[0]
	}) {
		ts.Fatalf("%s: got %q, %v, want %q", args[1], answer, err, args[0])
	}
}

func loggedCommand(ts *testscript.TestScript, neg bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	var text []byte
	var err error
	if !waitfor.Within(patience, func() bool {
		text, err = os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && pattern.Match(text)
	}) {
		ts.Fatalf("%v in\n%s", err, text)
	}
}

func dsnCommand(ts *testscript.TestScript, neg bool, args []string) {
	u, err := url.Parse(ts.Getenv("DATABASE_URL"))
	ts.Check(err)
	u.Path = "/" + args[0]
	ts.Setenv("DATABASE_URL", u.String())
}

func roleCommand(ts *testscript.TestScript, neg bool, args []string) {
	owner := ts.Getenv("DATABASE_URL")
	name := "relay_test_" + strings.ToLower(rand.Text())
	_, err := ask(ts, "create role "+name+" login password '"+name+"'")
	ts.Check(err)
	ts.Defer(func() { // roles belong to the server and outlive the database
		ts.Setenv("DATABASE_URL", owner)
		_, err := ask(ts, "drop owned by "+name+"; drop role "+name)
		ts.Check(err)
	})
	u, err := url.Parse(owner)
	ts.Check(err)
	u.User = url.UserPassword(name, name)
	ts.Setenv("ROLE", name)
	ts.Setenv("DATABASE_URL", u.String())
}

// ask runs a statement on the script's database.
func ask(ts *testscript.TestScript, statement string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, ts.Getenv("DATABASE_URL"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var out strings.Builder
	for rows.Next() {
		var columns []string
		for _, value := range rows.RawValues() {
			columns = append(columns, string(value))
		}
		fmt.Fprintln(&out, strings.Join(columns, "|"))
	}
	return out.String(), rows.Err()
}

// exitsCommand runs a command that must end with a code.
func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("got %v, want exit code %s", err, args[0])
	}
}

// scriptCommand runs an SQL file as psql does: an index that is built concurrently must be alone.
func scriptCommand(ts *testscript.TestScript, neg bool, args []string) {
	for i, statement := range statements(ts.ReadFile(args[0])) {
		if _, err := ask(ts, statement); err != nil {
			ts.Fatalf("statement %d: %v", i+1, err)
		}
	}
}

// statements splits a script.
func statements(script string) (all []string) {
	for i, part := range strings.Split(script, "$outbox$") {
		if i%2 == 1 {
			all[len(all)-1] += "$outbox$" + part + "$outbox$"
			continue
		}
		pieces := strings.SplitAfter(part, ";\n")
		if i > 0 {
			all[len(all)-1] += pieces[0]
			pieces = pieces[1:]
		}
		all = append(all, pieces...)
	}
	return all
}
