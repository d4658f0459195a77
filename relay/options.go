package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// sendMargin is what must remain of a lease after a send that takes its whole timeout: time to write the result.
const sendMargin = time.Second

// Options of a relay. The zero value works.
type Options struct {
	// Batch is how many messages one claim takes at most. Zero means 20; negative is invalid.
	Batch int
	// Concurrency is how many sends of each channel are under way at once: a channel whose sends hang holds up no other.
	// Zero means 5; negative is invalid.
	Concurrency int
	// Lease is how long a claimed message is safe from other relays. Should this one die, its messages are sent again that
	// long afterwards. Zero means 10 minutes; otherwise at least 5 s.
	Lease time.Duration
	// Timeout bounds one send. Zero means one minute, or half the lease if that is shorter; otherwise at least 1 s and at
	// most half the lease.
	Timeout time.Duration
	// Backoff is the wait before the next attempt after a transient failure.
	Backoff outbox.Backoff
	// Channels has what differs for single channels.
	Channels map[string]ChannelOptions
	// PollInterval is the longest wait between claims when nothing wakes the relay. Zero means 5 s; otherwise at least
	// 10 ms and at most 15 minutes. While notifications do not arrive it is 1 s at most.
	PollInterval time.Duration
	// ProbeInterval is the longest wait between two proofs that notifications arrive. Zero means 10 s; otherwise at least
	// 100 ms and at most 30 s. A dead connection is found within this and 3 s more.
	ProbeInterval time.Duration
	// ListenDSN is the connection string of the session that listens, for those whose pool goes through a pooler in
	// transaction mode. Empty means the pool's own.
	ListenDSN string
	// NoWatch keeps a busy relay from silencing the insert trigger. Each commit of a message then notifies, which on a disk
	// that is slow to flush bounds the commits of the whole cluster.
	NoWatch bool
	// DurableClaims has each claim wait for the disk. Otherwise a crash of the server may lose the last claims, whose
	// messages are then sent again although no relay died. Results always wait.
	DurableClaims bool
	// LeaveUnknownChannels leaves messages of a channel without a sender to other relays. Otherwise they are discarded
	// (credenciales, transporte_no_configurado).
	LeaveUnknownChannels bool
	// Observer sees what the relay does. Its zero value sees nothing.
	Observer Observer
	// Log gets Info at start and stop, Warn for what heals itself, Error for what needs a person, Debug for each message.
	// Nil means slog.Default().
	Log *slog.Logger
}

// ChannelOptions are the policy of one channel. A zero field means what the relay has for all.
type ChannelOptions struct {
	// Concurrency is how many of its sends are under way at once. Negative is invalid.
	Concurrency int
	// Timeout bounds one send: at least 1 s and at most half the lease.
	Timeout time.Duration
	// Backoff is the wait before the next attempt after a transient failure. Nil means the relay's. For webhooks there is
	// outbox.WebhookBackoff, which spans days.
	Backoff *outbox.Backoff
	// MaxAttempts raises the attempts of messages that were enqueued with fewer. Negative is invalid.
	MaxAttempts int
}

// WithDefaults is o with its defaults in place of zeros, also those of Channels. Observer and Log stay as they are.
func (o Options) WithDefaults() Options {
	o.Batch, o.Concurrency, o.Lease, o.Timeout = o.batch(), o.concurrency(), o.lease(), o.timeout()
	o.PollInterval, o.ProbeInterval = o.pollInterval(), o.probeInterval()
	o.Backoff = o.Backoff.WithDefaults()
	channels := make(map[string]ChannelOptions, len(o.Channels))
	for name := range o.Channels {
		policy := o.policy(name)
		backoff := policy.Backoff.WithDefaults()
		policy.Backoff = &backoff
		channels[name] = policy
	}
	o.Channels = channels
	return o
}

// policy is a channel's options with every field set but, perhaps, MaxAttempts.
func (o Options) policy(channel string) ChannelOptions {
	c := o.Channels[channel]
	c.Concurrency = cmp.Or(c.Concurrency, o.concurrency())
	c.Timeout = cmp.Or(c.Timeout, o.timeout())
	c.Backoff = cmp.Or(c.Backoff, &o.Backoff)
	return c
}

func (o Options) batch() int       { return cmp.Or(o.Batch, 20) }
func (o Options) concurrency() int { return cmp.Or(o.Concurrency, 5) }
func (o Options) lease() time.Duration {
	return cmp.Or(o.Lease, 10*time.Minute).Truncate(time.Microsecond)
}
func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, min(time.Minute, o.lease()/2)) }
func (o Options) pollInterval() time.Duration {
	return cmp.Or(o.PollInterval, 5*time.Second)
}
func (o Options) probeInterval() time.Duration { return cmp.Or(o.ProbeInterval, 10*time.Second) }
func (o Options) log() *slog.Logger {
	return cmp.Or(o.Log, slog.Default())
}

// Validate returns an error that wraps outbox.ErrInvalidOptions and names the field and its bound.
func (o Options) Validate() error {
	invalid := func(field, bound string, got any) error {
		return &outbox.OptionError{Field: "Options." + field, Reason: fmt.Sprintf("must be %s, got %v", bound, got)}
	}
	switch {
	case o.batch() < 1:
		return invalid("Batch", "at least 1", o.Batch)
	case o.concurrency() < 1:
		return invalid("Concurrency", "at least 1", o.Concurrency)
	case o.lease() < 5*time.Second:
		return invalid("Lease", "at least 5s", o.Lease)
	case o.timeout() < time.Second:
		return invalid("Timeout", "at least 1s", o.Timeout)
	case o.timeout() > o.lease()/2:
		return invalid("Timeout", fmt.Sprintf("at most half the lease (%v)", o.lease()/2), o.Timeout)
	case o.pollInterval() < 10*time.Millisecond || o.pollInterval() > notify.MaxPollInterval:
		return invalid("PollInterval", fmt.Sprintf("10ms to %v", notify.MaxPollInterval), o.PollInterval)
	case o.probeInterval() < 100*time.Millisecond || o.probeInterval() > 30*time.Second:
		return invalid("ProbeInterval", "100ms to 30s", o.ProbeInterval)
	}
	if o.ListenDSN != "" {
		if _, err := pgx.ParseConfig(o.ListenDSN); err != nil {
			// Without the cause: it quotes the string, which may hold a password.
			return &outbox.OptionError{Field: "Options.ListenDSN", Reason: "must be a Postgres connection string or URL"}
		}
	}
	if err := o.Backoff.Validate(); err != nil {
		return err
	}
	for channel := range o.Channels {
		if err := o.validateChannel(channel); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) validateChannel(channel string) error {
	field := func(name string) string { return fmt.Sprintf("Options.Channels[%q].%s", channel, name) }
	invalid := func(name, bound string, got any) error {
		return &outbox.OptionError{Field: field(name), Reason: fmt.Sprintf("must be %s, got %v", bound, got)}
	}
	switch c := o.policy(channel); {
	case c.Concurrency < 1:
		return invalid("Concurrency", "at least 1", c.Concurrency)
	case c.Timeout < time.Second:
		return invalid("Timeout", "at least 1s", c.Timeout)
	case c.Timeout > o.lease()/2:
		return invalid("Timeout", fmt.Sprintf("at most half the lease (%v)", o.lease()/2), c.Timeout)
	case c.MaxAttempts < 0:
		return invalid("MaxAttempts", "at least 1", c.MaxAttempts)
	}
	var wrong *outbox.OptionError
	if errors.As(o.policy(channel).Backoff.Validate(), &wrong) {
		return &outbox.OptionError{Field: field(wrong.Field), Reason: wrong.Reason}
	}
	return nil
}

// warnings say what is allowed and unwise.
func (o Options) warnings() []string {
	rounds := (o.batch() + o.concurrency() - 1) / o.concurrency()
	if need := o.timeout()*time.Duration(rounds) + sendMargin; o.lease() < need {
		return []string{fmt.Sprintf("Lease (%v) is shorter than Timeout * ceil(Batch/Concurrency) + 1s (%v): slow sends will make "+
			"messages be released unsent and claimed again", o.lease(), need)}
	}
	return nil
}
