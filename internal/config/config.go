// Package config reads the configuration of the relay command: a YAML file, the environment and flags.
//
// The structs below are the whole of it. A field's yaml tag is its key in the file; a scalar one is also a flag and an
// environment variable by the same name (poll_interval, --poll-interval, RELAY_POLL_INTERVAL). Its help tag is what
// relay help and the JSON schema say. A flag wins over the environment, and that over the file. Defaults and bounds are
// the library's: a field that is not set is zero here, which the library takes for its default.
package config

import (
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// Config is a file.
type Config struct {
	Log      Log      `yaml:"log" help:"What the relay logs."`
	HTTP     HTTP     `yaml:"http" help:"Where metrics and health are served."`
	Tracing  Tracing  `yaml:"tracing" help:"OpenTelemetry traces."`
	Outboxes []Outbox `yaml:"outboxes" help:"The outboxes to serve."`

	places places
}

// Log is how the relay logs.
type Log struct {
	Level  string `yaml:"level" enum:"debug,info,warn,error" help:"Least level that is logged. Default info; debug has a line for each message."`
	Format string `yaml:"format" enum:"text,json" help:"Default text on a terminal, otherwise json."`
}

// HTTP is where metrics and health are served.
type HTTP struct {
	Address   string   `yaml:"address" placeholder:"HOST:PORT" help:"Where metrics and health are served. Default 127.0.0.1:9095; \"none\" serves nothing."`
	Pprof     *bool    `yaml:"pprof" help:"Serve /debug/pprof/ as well, which shows the memory to whoever asks. Default false."`
	Tolerance Duration `yaml:"tolerance" placeholder:"TIME" help:"How long the database or its notifications may be away before /readyz says no. Default 30s."`
	PollOnly  *bool    `yaml:"poll_only" help:"Be ready without notifications, as behind a pooler in transaction mode: the relay then polls every second. Default false."`
}

// Tracing is where traces go.
type Tracing struct {
	Endpoint URL               `yaml:"endpoint" placeholder:"URL" help:"OTLP endpoint that traces go to, such as http://localhost:4318. Default none: no traces."`
	Headers  map[string]Secret `yaml:"headers" help:"Headers of the requests to the endpoint."`
	Continue *bool             `yaml:"continue" help:"Put a send into the trace of the span that enqueued its message, instead of linking it to that. Default false."`
}

// Outbox is one table and what is done with its messages.
type Outbox struct {
	Name           string `yaml:"name" help:"What --outbox, logs and metrics call it. Required if there are several."`
	Database       DSN    `yaml:"database" placeholder:"DSN" table:"" help:"Connection string. Default DATABASE_URL."`
	Schema         string `yaml:"schema" placeholder:"NAME" table:"" help:"Default public."`
	Table          string `yaml:"table" placeholder:"NAME" table:"" help:"Default outbox."`
	TenantColumn   string `yaml:"tenant_column" placeholder:"NAME" table:"" help:"Default organizacion_id."`
	TenantType     string `yaml:"tenant_type" enum:"uuid,text" table:"" help:"Type of the tenant column. Default uuid."`
	ListenDatabase DSN    `yaml:"listen_database" placeholder:"DSN" help:"Where to listen, if database is a pooler in transaction mode. Default database."`
	Pool           Pool   `yaml:"pool" help:"Connections to the database."`

	Batch                int       `yaml:"batch" placeholder:"N" help:"Messages of one claim, at least 1. Default 20."`
	Concurrency          int       `yaml:"concurrency" placeholder:"N" help:"Sends at once of each channel, at least 1. Default 5."`
	Lease                Duration  `yaml:"lease" placeholder:"TIME" help:"How long a claimed message is safe from other relays, at least 5s. Default 10m."`
	Timeout              Duration  `yaml:"timeout" placeholder:"TIME" help:"Bounds one send: 1s to half the lease. Default 1m."`
	Backoff              Backoff   `yaml:"backoff" help:"Wait after a transient failure."`
	PollInterval         Duration  `yaml:"poll_interval" placeholder:"TIME" help:"Longest wait between claims when nothing wakes the relay, 10ms to 15m. Default 5s."`
	ProbeInterval        Duration  `yaml:"probe_interval" placeholder:"TIME" help:"Longest wait between two proofs that notifications arrive, 100ms to 30s. Default 10s."`
	NoWatch              *bool     `yaml:"no_watch" help:"Never silence the insert trigger while busy. Default false."`
	DurableClaims        *bool     `yaml:"durable_claims" help:"Have each claim wait for the disk. Default false."`
	LeaveUnknownChannels *bool     `yaml:"leave_unknown_channels" help:"Leave messages of channels that are not configured to other relays instead of discarding them. Default false."`
	Retention            Retention `yaml:"retention" help:"How long finished messages are kept."`

	Channels map[string]Channel `yaml:"channels" help:"What sends the messages of each channel."`

	path string // of its keys: outboxes[0]
}

// Pool is the pool of connections.
type Pool struct {
	MaxConnections int32 `yaml:"max_connections" placeholder:"N" help:"Most connections of the pool, at least 1; the relay has two more of its own. Default 4, or the number of CPUs."`
}

// Backoff is the wait after a transient failure: outbox.Backoff, or a preset.
type Backoff struct {
	Preset   string     `yaml:"preset" enum:"webhook" help:"webhook waits 5s at first and 24h in the end, three days in all."`
	Base     Duration   `yaml:"base" placeholder:"TIME" help:"Wait after the first failure. Default 30s."`
	Factor   float64    `yaml:"factor" placeholder:"N" help:"Multiplies the wait after each further failure, at least 1. Default 2."`
	Cap      Duration   `yaml:"cap" placeholder:"TIME" help:"Longest wait. Default 1h."`
	Schedule []Duration `yaml:"schedule" help:"The waits one by one, in place of base, factor and cap."`
	Jitter   float64    `yaml:"jitter" placeholder:"N" help:"Greatest deviation as a fraction of the wait, at most 1; negative means none. Default 0.2."`
}

// Retention is how long finished messages are kept. Zero means for ever.
type Retention struct {
	Sent      Duration `yaml:"enviado" placeholder:"TIME" help:"How long sent messages are kept, such as 30d. Default for ever."`
	Failed    Duration `yaml:"fallido" placeholder:"TIME" help:"How long failed messages are kept. Default for ever."`
	Discarded Duration `yaml:"descartado" placeholder:"TIME" help:"How long discarded messages are kept. Default for ever."`
}

// Channel is how the messages of a channel are sent.
type Channel struct {
	Sender      string   `yaml:"sender" help:"What sends them."`
	Concurrency int      `yaml:"concurrency" help:"Its sends at once. Default the outbox's."`
	Timeout     Duration `yaml:"timeout" help:"Bounds one send: 1s to half the lease. Default the outbox's."`
	Backoff     *Backoff `yaml:"backoff" help:"Wait after a transient failure. Default the outbox's."`
	MaxAttempts int      `yaml:"max_attempts" help:"Raises the attempts of messages that were enqueued with fewer."`

	// Options are those of the sender: *Resend, *SMTP, *Kapso, *Meta, *Webhook or *Print.
	Options any `yaml:"-"`
}

// OutboxTable is the table of o.
func (o Outbox) OutboxTable() outbox.Table {
	return outbox.Table{Schema: o.Schema, Name: o.Table, TenantColumn: o.TenantColumn, TenantType: outbox.TenantType(o.TenantType)}
}

// Prints tells whether messages of o are printed instead of sent.
func (o Outbox) Prints() bool {
	for _, c := range o.Channels {
		if _, prints := c.Options.(*Print); prints {
			return true
		}
	}
	return false
}

// RelayOptions are the options of o for relay.Run, without Observer and Log. An outbox that prints leaves channels without
// a sender alone, whatever it says: trying things out must not discard what a real relay could send.
func (o Outbox) RelayOptions() relay.Options {
	opts := relay.Options{
		Batch: o.Batch, Concurrency: o.Concurrency, Lease: o.Lease.Std(), Timeout: o.Timeout.Std(), Backoff: o.Backoff.outbox(),
		PollInterval: o.PollInterval.Std(), ProbeInterval: o.ProbeInterval.Std(), ListenDSN: string(o.ListenDatabase),
		NoWatch: on(o.NoWatch), DurableClaims: on(o.DurableClaims), LeaveUnknownChannels: on(o.LeaveUnknownChannels) || o.Prints(),
		Channels: map[string]relay.ChannelOptions{},
	}
	for name, c := range o.Channels {
		policy := relay.ChannelOptions{Concurrency: c.Concurrency, Timeout: c.Timeout.Std(), MaxAttempts: c.MaxAttempts}
		if c.Backoff != nil {
			backoff := c.Backoff.outbox()
			policy.Backoff = &backoff
		}
		opts.Channels[name] = policy
	}
	return opts
}

func (b Backoff) outbox() outbox.Backoff {
	if b.Preset == "webhook" {
		preset := outbox.WebhookBackoff()
		preset.Jitter = b.Jitter
		return preset
	}
	backoff := outbox.Backoff{Base: b.Base.Std(), Factor: b.Factor, Cap: b.Cap.Std(), Jitter: b.Jitter}
	for _, wait := range b.Schedule {
		backoff.Schedule = append(backoff.Schedule, wait.Std())
	}
	return backoff
}

func on(b *bool) bool { return b != nil && *b }
