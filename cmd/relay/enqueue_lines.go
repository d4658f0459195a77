package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// line is a message as it stands in a line of JSON, by the names that print has, too.
type line struct {
	Tenant       string            `json:"tenant"`
	Channel      string            `json:"channel"`
	Destination  string            `json:"destination"`
	Template     string            `json:"template"`
	Data         json.RawMessage   `json:"data,omitempty"`
	Key          string            `json:"key"`
	ScheduledFor time.Time         `json:"scheduled_for"`
	MaxAttempts  int               `json:"max_attempts"`
	OrderingKey  string            `json:"ordering_key"`
	Headers      map[string]string `json:"headers"`
}

// lineKeys are the names of the fields of outbox.Message.
var lineKeys = map[string]string{
	"TenantID": "tenant", "Channel": "channel", "Destination": "destination", "Template": "template", "Data": "data", "IdempotencyKey": "key",
	"ScheduledFor": "scheduled_for", "MaxAttempts": "max_attempts", "OrderingKey": "ordering_key", "Headers": "headers",
}

// lines reads messages.
type lines struct {
	reader *bufio.Reader
	check  func(outbox.Message) error
	flags  bool // there is one line, which is made of flags
	n      int
}

// next reads up to max messages. None are left when it gives none.
func (l *lines) next(max int) (batch []outbox.Message, err error) {
	for len(batch) < max {
		text, err := l.reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		l.n++
		if text := bytes.TrimSpace(text); len(text) > 0 {
			m, err := l.parse(text)
			if err != nil {
				return nil, err
			}
			batch = append(batch, m)
		}
		if err != nil {
			break
		}
	}
	return batch, nil
}

func (l *lines) parse(text []byte) (outbox.Message, error) {
	if !utf8.Valid(text) { // the decoder would put something else in its place, and two keys could become one
		return outbox.Message{}, fmt.Errorf("%w: %sis not UTF-8", errUsage, l.place())
	}
	var read line
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return outbox.Message{}, fmt.Errorf("%w: %s%s", errUsage, l.place(), jsonFault(err))
	}
	if decoder.More() {
		return outbox.Message{}, fmt.Errorf("%w: %shas more than one JSON object: write one a line", errUsage, l.place())
	}
	m := outbox.Message{TenantID: read.Tenant, Channel: read.Channel, Destination: read.Destination, Template: read.Template, IdempotencyKey: read.Key,
		ScheduledFor: read.ScheduledFor, MaxAttempts: read.MaxAttempts, OrderingKey: read.OrderingKey, Headers: read.Headers}
	if len(read.Data) > 0 && string(read.Data) != "null" {
		m.Data = read.Data
	}
	err := l.check(m)
	var wrong *outbox.OptionError
	if errors.As(err, &wrong) {
		key := lineKeys[strings.TrimPrefix(wrong.Field, "Message.")]
		if l.flags {
			key = "--" + strings.ReplaceAll(key, "_", "-")
		}
		return m, fmt.Errorf("%w: %s%s %s", errUsage, l.place(), key, wrong.Reason)
	}
	return m, err
}

func (l *lines) place() string {
	if l.flags {
		return ""
	}
	return fmt.Sprintf("line %d: ", l.n)
}

// jsonFault is what is wrong with a line, without what stands in it: a recipient, for one.
func jsonFault(err error) string {
	var wrongType *json.UnmarshalTypeError
	field, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return wrongType.Field + " has the wrong type: see relay enqueue --help"
	case unknown:
		return "unknown key " + field + ": see relay enqueue --help"
	}
	return "must be one JSON object in one line: see relay enqueue --help"
}

// checker finds what is wrong with a message before anything is written. A channel that the configuration does not have
// would be discarded by its relay.
func checker(o config.Outbox) func(outbox.Message) error {
	table := o.OutboxTable()
	return func(m outbox.Message) error {
		if err := table.Check(m); err != nil {
			return err
		}
		_, known := o.Channels[m.Channel]
		if !known && len(o.Channels) > 0 && !o.RelayOptions().LeaveUnknownChannels {
			names := strings.Join(slices.Sorted(maps.Keys(o.Channels)), ", ")
			return &outbox.OptionError{Field: "Message.Channel", Reason: fmt.Sprintf("must be one that the configuration has (%s), got %q", names, m.Channel)}
		}
		return nil
	}
}
