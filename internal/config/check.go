package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// check completes c and finds what is wrong with it.
func (c *Config) check(env func(string) (string, bool)) (faults []error) {
	if c.HTTP.Tolerance < 0 {
		faults = append(faults, c.fault("http.tolerance", "must be at least 0, got %v", c.HTTP.Tolerance))
	}
	if u, err := url.Parse(string(c.Tracing.Endpoint)); c.Tracing.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		faults = append(faults, c.fault("tracing.endpoint", "must be a URL such as http://localhost:4318"))
	}
	seen := map[string]string{}
	for i := range c.Outboxes {
		o := &c.Outboxes[i]
		if o.Database == "" {
			value, _ := env("DATABASE_URL")
			o.Database = DSN(value)
			c.places[o.path+".database"] = "DATABASE_URL"
		}
		faults = append(faults, c.checkOutbox(*o)...)
		where := fmt.Sprintf("%s\x00%s", string(o.Database), o.OutboxTable())
		if other, twice := seen[where]; twice && o.Database != "" {
			faults = append(faults, c.fault(o.path, "is the same table as %s: give one of them another schema, table or database", other))
		}
		seen[where] = o.path
	}
	return faults
}

func (c *Config) checkOutbox(o Outbox) (faults []error) {
	if len(c.Outboxes) > 1 {
		switch {
		case o.Name == "":
			faults = append(faults, c.fault(o.path, "needs a name, since there are several outboxes"))
		case slices.ContainsFunc(c.Outboxes, func(other Outbox) bool { return other.Name == o.Name && other.path != o.path }):
			faults = append(faults, c.fault(o.path+".name", "two outboxes have the name %q", o.Name))
		}
	}
	for key, d := range map[string]Duration{"enviado": o.Retention.Sent, "fallido": o.Retention.Failed, "descartado": o.Retention.Discarded} {
		if d < 0 || d > 0 && d < Duration(time.Minute) {
			faults = append(faults, c.fault(o.path+".retention."+key, "must be at least 1m, or 0 for ever, got %v", d))
		}
	}
	if o.Name != "" && !validName.MatchString(o.Name) {
		faults = append(faults, c.fault(o.path+".name", "must be letters a to z, digits, points, hyphens and underscores, got %q", o.Name))
	}
	if o.Database != "" {
		// Without the cause or the string, which may hold a password.
		if conf, err := pgxpool.ParseConfig(string(o.Database)); err != nil {
			faults = append(faults, c.fault(o.path+".database", "must be a connection string such as postgres://user@host/database"))
		} else if spilt(conf.ConnConfig) {
			faults = append(faults, c.fault(o.path+".database", "has an @ in its host or its database's name: write the @ of a password as %%40 and its / as %%2F"))
		}
	}
	if o.Pool.MaxConnections < 0 {
		faults = append(faults, c.fault(o.path+".pool.max_connections", "must be at least 1, got %d", o.Pool.MaxConnections))
	}
	for _, err := range []error{o.OutboxTable().Validate(), o.RelayOptions().Validate()} {
		var wrong *outbox.OptionError
		if errors.As(err, &wrong) {
			faults = append(faults, c.fault(join(o.path, optionKey(wrong.Field)), "%s", wrong.Reason))
		} else if err != nil {
			faults = append(faults, c.fault(o.path, "%v", err))
		}
	}
	return faults
}

// spilt: a password that is not escaped was read as a host or a database, and would be printed as such.
func spilt(conf *pgx.ConnConfig) bool {
	names := conf.Host + conf.Database
	for _, other := range conf.Fallbacks {
		names += other.Host
	}
	return strings.Contains(names, "@")
}

// Fault says that something is wrong with a key of o, with its line. An error about an option of a sender is about the key
// of that option within it.
func (c *Config) Fault(o Outbox, key string, err error) error {
	var wrong *outbox.OptionError
	if errors.As(err, &wrong) {
		name := wrong.Field[strings.LastIndexAny(wrong.Field, ". ")+1:]
		return c.fault(join(o.path, join(key, cmp.Or(senderKeys[name], snakeCase(name)))), "%s", wrong.Reason)
	}
	reason := strings.TrimPrefix(err.Error(), outbox.ErrInvalidOptions.Error()+": ")
	return c.fault(join(o.path, key), "%s", strings.NewReplacer(":\n", ": ", "\n", "; ").Replace(reason))
}

// senderKeys are those that are called otherwise in the library.
var senderKeys = map[string]string{"addr": "server", "TTL": "credentials.ttl", "MissingTTL": "credentials.missing_ttl", "Max": "credentials.max"}

func (c *Config) fault(key, format string, args ...any) error {
	where := c.places.of(key)
	if strings.HasPrefix(where, "--") || strings.HasPrefix(where, "RELAY_") || where == "DATABASE_URL" {
		key = ""
	}
	return &Error{Where: where, Key: key, Text: fmt.Sprintf(format, args...)}
}

// channelField is a field of relay.Options.Channels.
var channelField = regexp.MustCompile(`^Channels\["(.*)"\]\.(.*)$`)

// optionKey is the key in the file of a field of the library's: Options.Channels["correo"].MaxAttempts is
// channels.correo.max_attempts.
func optionKey(field string) string {
	switch field {
	case "Table.Name":
		return "table"
	case "Options.ListenDSN":
		return "listen_database"
	}
	field = strings.TrimPrefix(strings.TrimPrefix(field, "Table."), "Options.")
	if m := channelField.FindStringSubmatch(field); m != nil {
		return "channels." + m[1] + "." + snakeCase(m[2])
	}
	return snakeCase(field)
}

// wordEnd is between the words of a name: PollInterval, MessageIDDomain.
var wordEnd = regexp.MustCompile(`([a-z])([A-Z])|([A-Z])([A-Z][a-z])`)

// snakeCase makes poll_interval of PollInterval.
func snakeCase(name string) string {
	return strings.ToLower(wordEnd.ReplaceAllString(name, "${1}${3}_${2}${4}"))
}
