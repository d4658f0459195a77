package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/outbox"
)

const description = `Sends the messages of outbox tables, builds such tables and looks after them.

It reads relay.yaml, or the file that --config or RELAY_CONFIG names. Every option of an outbox is also an environment
variable (--tenant-column is RELAY_TENANT_COLUMN) and a flag; a flag wins over the environment, and that over the file.
Without a file there is one outbox, in the database of DATABASE_URL.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.`

// cli is the grammar of the command line.
type cli struct {
	File   string `name:"config" help:"Configuration file, also RELAY_CONFIG. Default relay.yaml if there is one." placeholder:"FILE" group:"Configuration"`
	Outbox string `help:"The outbox that is meant, also RELAY_OUTBOX." placeholder:"NAME" group:"Configuration"`
	kong.Plugins

	Run        runCmd        `cmd:"" help:"Send messages until SIGINT or SIGTERM; a second one ends it at once."`
	Migrate    migrateCmd    `cmd:"" help:"Build or update the table."`
	Enqueue    enqueueCmd    `cmd:"" help:"Write messages to the outbox, in one transaction."`
	Status     statusCmd     `cmd:"" help:"Print how an outbox stands: counts, what is due, rates, pauses."`
	List       listCmd       `cmd:"" help:"List messages."`
	Show       showCmd       `cmd:"" help:"Print one message."`
	Redrive    redriveCmd    `cmd:"" help:"Send messages again that failed; prints what it would do unless --yes."`
	Cancel     cancelCmd     `cmd:"" help:"Discard messages that wait; prints what it would do unless --yes."`
	Purge      purgeCmd      `cmd:"" help:"Delete finished messages."`
	Pause      pauseCmd      `cmd:"" help:"Have all relays leave messages alone until resume; enqueueing goes on."`
	Resume     resumeCmd     `cmd:"" help:"Take a pause away."`
	Doctor     doctorCmd     `cmd:"" help:"Say what is wrong with the outboxes and their databases, why it matters and what mends it; exit 1 when something is broken."`
	Config     configCmd     `cmd:"" help:"Print or check the configuration."`
	Completion completionCmd `cmd:"" help:"Print the script by which a shell completes commands and flags."`
	Complete   completeCmd   `cmd:"" hidden:""`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// main runs one command line and gives the exit code: 0 done, 1 failed, 2 wrong usage or configuration.
func (a *app) main(args []string) int {
	err := a.dispatch(args)
	if err == nil {
		return 0
	}
	fmt.Fprintf(a.stderr, "relay: %s\n", describe(err))
	if wrongUsage(err) {
		return 2
	}
	return 1
}

func (a *app) dispatch(args []string) error {
	parsed, err := a.parse(args)
	if err != nil || parsed == nil {
		return err
	}
	return parsed.Run(a)
}

// parse reads a command line into a command that can be run. It gives none when help was asked for and printed.
func (a *app) parse(args []string) (*kong.Context, error) {
	if len(args) == 0 {
		args = []string{"--help"}
	} else if args[0] == "help" {
		args = append(args[1:], "--help")
	}
	tableFlags, relayFlags := newOptionFlags(isTable), newOptionFlags(isRelay)
	grammar := cli{Plugins: kong.Plugins{tableFlags.target}}
	grammar.Run.Plugins = kong.Plugins{relayFlags.target}
	helped := false
	parser, err := kong.New(&grammar, kong.Name("relay"), kong.Description(description), kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { helped = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}))
	if err != nil {
		return nil, err
	}
	a.grammar = parser.Model.Node
	parsed, err := parser.Parse(args)
	if helped {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; see relay help", errUsage, unknownCommand(err))
	}
	a.source = config.Source{File: grammar.File, Outbox: grammar.Outbox, Flags: map[string]string{}, Env: a.env}
	tableFlags.read(a.source.Flags)
	relayFlags.read(a.source.Flags)
	return parsed, nil
}

// unknownCommand says what is wrong with a first word that is no command: kong takes it for an argument.
func unknownCommand(err error) error {
	var wrong *kong.ParseError
	word, is := strings.CutPrefix(err.Error(), "unexpected argument ")
	if is && errors.As(err, &wrong) && wrong.Context.Selected() == nil {
		return errors.New("unknown command " + word)
	}
	return err
}

// errUsage is wrapped by errors of the command line.
var errUsage = errors.New("wrong usage")

func wrongUsage(err error) bool {
	return errors.Is(err, errUsage) || errors.Is(err, outbox.ErrInvalidOptions) || len(config.Errors(err)) > 0
}

// describe is err in one line that says what to do next.
func describe(err error) string {
	if faults := config.Errors(err); len(faults) > 1 {
		return fmt.Sprintf("%v (and %d more: relay config check shows them)", faults[0], len(faults)-1)
	}
	text := strings.TrimPrefix(err.Error(), errUsage.Error()+": ")
	return strings.NewReplacer("\n\t", " ", "\n", "; ").Replace(strings.TrimSpace(text))
}
