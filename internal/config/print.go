package config

import (
	"cmp"
	"encoding"
	"maps"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// YAML is the effective configuration as a file: with the library's defaults, and stars in place of secrets.
func (c *Config) YAML() ([]byte, error) {
	return yaml.MarshalWithOptions(tree(reflect.ValueOf(c.effective())), yaml.IndentSequence(true), yaml.AutoInt())
}

// JSON is the same in JSON.
func (c *Config) JSON() ([]byte, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// effective is c with the library's defaults.
func (c *Config) effective() Config {
	full := *c
	full.Outboxes = slices.Clone(c.Outboxes)
	for i, o := range full.Outboxes {
		full.Outboxes[i] = o.effective()
	}
	return full
}

func (o Outbox) effective() Outbox {
	table, opts := o.OutboxTable().WithDefaults(), o.RelayOptions().WithDefaults()
	o.Schema, o.Table, o.TenantColumn, o.TenantType = table.Schema, table.Name, table.TenantColumn, string(table.TenantType)
	o.Batch, o.Concurrency, o.Lease, o.Timeout = opts.Batch, opts.Concurrency, Duration(opts.Lease), Duration(opts.Timeout)
	o.PollInterval, o.ProbeInterval, o.Backoff = Duration(opts.PollInterval), Duration(opts.ProbeInterval), backoffOf(opts.Backoff)
	o.NoWatch, o.DurableClaims, o.LeaveUnknownChannels = &opts.NoWatch, &opts.DurableClaims, &opts.LeaveUnknownChannels
	o.Channels = maps.Clone(o.Channels)
	for name, c := range o.Channels {
		policy := opts.Channels[name]
		backoff := backoffOf(*policy.Backoff)
		c.Concurrency, c.Timeout, c.Backoff = policy.Concurrency, Duration(policy.Timeout), &backoff
		o.Channels[name] = c
	}
	return o
}

// backoffOf is b in the form of the file. One with a schedule has no use for the rest.
func backoffOf(b outbox.Backoff) Backoff {
	if len(b.Schedule) == 0 {
		return Backoff{Base: Duration(b.Base), Factor: b.Factor, Cap: Duration(b.Cap), Jitter: b.Jitter}
	}
	c := Backoff{Jitter: b.Jitter}
	for _, wait := range b.Schedule {
		c.Schedule = append(c.Schedule, Duration(wait))
	}
	return c
}

// tree is v as the YAML library writes it, with its keys in the order of the struct and without zeros.
func tree(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case interface{ masked() string }:
		return value.masked()
	case Duration:
		return value.String()
	case encoding.TextMarshaler:
		text, _ := value.MarshalText() // of a prefix, which was read from a text
		return string(text)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return tree(v.Elem())
	case reflect.Struct:
		return branches(v)
	case reflect.Slice:
		all := make([]any, v.Len())
		for i := range all {
			all[i] = tree(v.Index(i))
		}
		return all
	case reflect.Map:
		var all yaml.MapSlice
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
			all = append(all, yaml.MapItem{Key: key.String(), Value: tree(v.MapIndex(key))})
		}
		return all
	}
	return v.Interface()
}

func branches(v reflect.Value) (all yaml.MapSlice) {
	for _, f := range fields(v.Type()) {
		if field := v.FieldByIndex(f.index); !empty(field) {
			all = append(all, yaml.MapItem{Key: f.key, Value: tree(field)})
		}
	}
	if channel, ok := v.Interface().(Channel); ok {
		all = append(all, branches(reflect.ValueOf(channel.Options).Elem())...)
	}
	return all
}

// empty tells whether a field would only take up room.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return v.IsZero() || !isScalar(v.Type()) && len(branches(v)) == 0
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	}
	return v.IsZero()
}
