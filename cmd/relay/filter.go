package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// filterFlags say which messages are meant.
type filterFlags struct {
	IDs      []string `arg:"" optional:"" name:"id" help:"These messages, as by --id."`
	ID       []string `name:"id" help:"These messages." placeholder:"ID" group:"Filter"`
	State    []string `help:"pendiente, procesando, enviado, fallido or descartado." placeholder:"STATE" group:"Filter"`
	Channel  string   `help:"Of this channel." placeholder:"NAME" group:"Filter"`
	Tenant   string   `help:"Of this tenant." placeholder:"ID" group:"Filter"`
	Key      string   `help:"With this idempotency key; needs --tenant." placeholder:"KEY" group:"Filter"`
	Category string   `help:"Whose last failure has this category, such as red." placeholder:"NAME" group:"Filter"`
	Code     string   `help:"Whose last failure has this code." placeholder:"CODE" group:"Filter"`
	Since    instant  `help:"Last changed at this time or later: 2h (ago), 30d, 2026-03-01 or 2026-03-01T10:00:00Z." placeholder:"TIME" group:"Filter"`
	Until    instant  `help:"Last changed before this time." placeholder:"TIME" group:"Filter"`
}

func (f filterFlags) filter() admin.Filter {
	a := admin.Filter{IDs: slices.Concat(f.IDs, f.ID), Channel: f.Channel, TenantID: f.Tenant, Key: f.Key, Category: f.Category, Code: f.Code,
		Since: f.Since.Time, Until: f.Until.Time}
	for _, s := range f.State {
		a.States = append(a.States, outbox.State(s))
	}
	return a
}

// empty tells whether nothing was said: a change of everything must be asked for.
func (f filterFlags) empty() bool {
	return len(f.IDs)+len(f.ID)+len(f.State) == 0 && f.Channel+f.Tenant+f.Key+f.Category+f.Code == "" && f.Since.IsZero() && f.Until.IsZero()
}

// instant is a time, absolute or so long ago.
type instant struct{ time.Time }

// UnmarshalText reads a time of RFC 3339, a date (its begin, in local time), or a duration before now.
func (m *instant) UnmarshalText(text []byte) error {
	s := string(text)
	var ago config.Duration
	if ago.UnmarshalText(text) == nil && ago >= 0 {
		m.Time = time.Now().Add(-time.Duration(ago))
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			m.Time = t
			return nil
		}
	}
	return fmt.Errorf("%q is no time: write 2h (two hours ago), 30d, 2026-03-01 or 2026-03-01T10:00:00Z", s)
}
