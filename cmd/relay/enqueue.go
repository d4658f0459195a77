package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/internal/plural"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// enqueueBatch is how many messages of standard input one statement writes.
const enqueueBatch = 500

type enqueueCmd struct {
	jsonFlag
	Tenant      string            `help:"Whose message it is."`
	Channel     string            `help:"What sends it."`
	Destination string            `help:"Address, number or URL."`
	Template    string            `help:"Its template, or the type of an event."`
	Data        string            `help:"JSON, default {}."`
	Key         string            `help:"Idempotency key: enqueueing it again changes nothing."`
	At          string            `help:"Not before this time: 2026-12-24T18:00:00-03:00, or in 10m, 2h, 30d. Default now." placeholder:"TIME"`
	MaxAttempts int               `help:"Default 5." placeholder:"N"`
	OrderingKey string            `help:"Ordering key."`
	Header      map[string]string `help:"Header that travels with it." placeholder:"NAME=VALUE"`
}

// Help is what relay enqueue --help says in addition.
func (*enqueueCmd) Help() string {
	return `The message is made of the flags. Without them messages are read from standard input, one JSON object a line:

  {"tenant": "3f1b...", "channel": "correo", "destination": "ana@example.com", "template": "bienvenida",
   "data": {"nombre": "Ana"}, "key": "bienvenida-ana"}

and, where wanted, "scheduled_for": "2026-12-24T18:00:00-03:00", "max_attempts": 10, "ordering_key": "...",
"headers": {"...": "..."}. All are written or none. Once they are committed their ids are printed, in the same order.`
}

// Run enqueues one message of the flags or those of standard input.
func (c *enqueueCmd) Run(a *app) error {
	o, err := a.outbox()
	if err != nil {
		return err
	}
	from := &lines{reader: bufio.NewReader(a.stdin), check: checker(o)}
	if c.byFlags() {
		if from, err = c.flags(o); err != nil {
			return err
		}
	} else if isTerminal(a.stdin) {
		return fmt.Errorf("%w: give the message by flags (relay enqueue --help), or JSON lines on standard input", errUsage)
	}
	pool, err := a.pool(o)
	if err != nil {
		return err
	}
	defer pool.Close()
	var answers []outbox.Enqueued
	err = pgx.BeginFunc(a.ctx, pool, func(tx pgx.Tx) (err error) {
		answers, err = enqueueAll(a.ctx, tx, o.OutboxTable(), from)
		return err
	})
	if err != nil {
		return err
	}
	return c.print(a, answers)
}

func enqueueAll(ctx context.Context, tx pgx.Tx, table outbox.Table, from *lines) (all []outbox.Enqueued, err error) {
	for {
		batch, err := from.next(enqueueBatch)
		if err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			return all, nil
		}
		answers, err := table.EnqueueMany(ctx, tx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, answers...)
	}
}

func (c *enqueueCmd) print(a *app, answers []outbox.Enqueued) error {
	if len(answers) == 0 {
		fmt.Fprintln(a.stderr, "nothing to enqueue: standard input has no message")
	}
	out := bufio.NewWriter(a.stdout)
	written := 0
	for _, answer := range answers {
		if answer.New {
			written++
		}
		if c.JSON {
			fmt.Fprintf(out, "{\"id\":%q,\"new\":%t}\n", answer.ID, answer.New)
		} else {
			fmt.Fprintln(out, answer.ID)
		}
	}
	if there := len(answers) - written; there > 0 {
		fmt.Fprintf(a.stderr, "%d written, %d %s there already by tenant and key\n", written, there, plural.Pick(there, "was", "were"))
	}
	return out.Flush()
}

func (c *enqueueCmd) byFlags() bool {
	return c.Tenant+c.Channel+c.Destination+c.Template+c.Data+c.Key+c.At+c.OrderingKey != "" || c.MaxAttempts != 0 || len(c.Header) > 0
}

// flags is the one message of the flags, as if it were a line.
func (c *enqueueCmd) flags(o config.Outbox) (*lines, error) {
	l := line{Tenant: c.Tenant, Channel: c.Channel, Destination: c.Destination, Template: c.Template, Key: c.Key,
		MaxAttempts: c.MaxAttempts, OrderingKey: c.OrderingKey, Headers: c.Header}
	if c.Data != "" {
		l.Data = json.RawMessage(c.Data)
	}
	var err error
	if l.ScheduledFor, err = moment(c.At, time.Now()); err != nil {
		return nil, fmt.Errorf("%w: --at %w", errUsage, err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("%w: --data must be JSON, such as '{\"nombre\": \"Ana\"}'", errUsage)
	}
	return &lines{reader: bufio.NewReader(bytes.NewReader(text)), check: checker(o), flags: true}, nil
}

// moment is a time, or a wait from now.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	var wait config.Duration
	if err := wait.UnmarshalText([]byte(s)); err == nil {
		return now.Add(wait.Std()), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("must be a time such as 2026-12-24T18:00:00-03:00, or a wait such as 10m, 2h or 30d, got %q", s)
	}
	return at, nil
}
