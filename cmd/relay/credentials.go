package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/internal/config"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
	"github.com/mafesoftware/outbox-relay/transporte/kapso"
	"github.com/mafesoftware/outbox-relay/transporte/meta"
	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

func (s *served) kapsoSender(channel string, o *config.Kapso) (transporte.Sender, error) {
	provider, err := kapso.New(kapso.Options{BaseURL: o.BaseURL, Language: o.Language})
	if err != nil {
		return nil, err
	}
	known := map[string]kapso.Credentials{}
	for tenant, t := range o.Tenants {
		known[tenant] = kapso.Credentials{APIKey: string(t.APIKey), PhoneNumberID: t.PhoneNumberID, Language: t.Language}
	}
	if err := checkCredentials(kapso.Credentials{APIKey: string(o.APIKey), PhoneNumberID: o.PhoneNumberID}, known); err != nil {
		return nil, err
	}
	find, err := lookup(s, channel, known, o.Lookup)
	if err != nil {
		return nil, err
	}
	if o.PhoneNumberID == "" && len(known) == 0 && o.Lookup == nil {
		return nil, errors.New("needs credentials: api_key and phone_number_id for all tenants, tenants, or credentials with a query")
	}
	credentials := func(ctx context.Context, tenant string) (kapso.Credentials, bool, error) {
		c, _, err := find(ctx, tenant)
		c.APIKey, c.PhoneNumberID = cmp.Or(c.APIKey, string(o.APIKey)), cmp.Or(c.PhoneNumberID, o.PhoneNumberID)
		return c, c.APIKey != "" && c.PhoneNumberID != "", err
	}
	return whatsappSender(o.WhatsApp, credentials, provider.Send)
}

func (s *served) metaSender(channel string, o *config.Meta) (transporte.Sender, error) {
	provider, err := meta.New(meta.Options{BaseURL: o.BaseURL, Language: o.Language})
	if err != nil {
		return nil, err
	}
	known := map[string]meta.Credentials{}
	for tenant, t := range o.Tenants {
		known[tenant] = meta.Credentials{Token: string(t.Token), PhoneNumberID: t.PhoneNumberID, Language: t.Language}
	}
	if err := checkCredentials(meta.Credentials{Token: string(o.Token), PhoneNumberID: o.PhoneNumberID}, known); err != nil {
		return nil, err
	}
	find, err := lookup(s, channel, known, o.Lookup)
	if err != nil {
		return nil, err
	}
	if o.PhoneNumberID == "" && len(known) == 0 && o.Lookup == nil {
		return nil, errors.New("needs credentials: token and phone_number_id for all tenants, tenants, or credentials with a query")
	}
	credentials := func(ctx context.Context, tenant string) (meta.Credentials, bool, error) {
		c, _, err := find(ctx, tenant)
		c.Token, c.PhoneNumberID = cmp.Or(c.Token, string(o.Token)), cmp.Or(c.PhoneNumberID, o.PhoneNumberID)
		return c, c.Token != "" && c.PhoneNumberID != "", err
	}
	return whatsappSender(o.WhatsApp, credentials, provider.Send)
}

// checkCredentials finds what would have every message of a tenant discarded.
func checkCredentials[C interface{ Check() error }](all C, tenants map[string]C) error {
	if err := all.Check(); err != nil {
		return err
	}
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		if err := tenants[tenant].Check(); err != nil {
			return &within{"tenants." + tenant, err}
		}
	}
	return nil
}

// within is an error about what stands in a key of a channel.
type within struct {
	key string
	error
}

func (w *within) Unwrap() error { return w.error }

func whatsappSender[C any](
	o config.WhatsApp, credentials func(context.Context, string) (C, bool, error), send func(context.Context, C, transporte.Template) (string, error),
) (transporte.Sender, error) {
	var opts transporte.WhatsAppOptions
	if o.Templates != "" {
		templates, err := loadTemplates(o.Templates)
		if err != nil {
			return nil, err
		}
		opts = templates.WhatsApp()
	}
	return transporte.NewWhatsApp(credentials, send, opts)
}

func (s *served) webhookSender(channel string, o *config.Webhook, c config.Channel) (transporte.Sender, error) {
	known := map[string]webhook.Endpoint{}
	for tenant, e := range o.Tenants {
		known[tenant] = endpoint(e)
	}
	var query *config.Lookup
	byDestination := false
	if o.Lookup != nil {
		query, byDestination = &o.Lookup.Lookup, o.Lookup.By == "destination"
	}
	find, err := lookup(s, channel, map[string]webhook.Endpoint{}, query)
	if err != nil {
		return nil, err
	}
	authority, err := trusting(o.CAFile)
	if err != nil {
		return nil, err
	}
	if len(o.Secrets) == 0 && len(known) == 0 && query == nil {
		return nil, errors.New("needs secrets to sign with: secrets for all tenants, tenants, or credentials with a query")
	}
	all := endpoint(o.Endpoint)
	for _, e := range append(slices.Collect(maps.Values(known)), all) {
		if slices.ContainsFunc(e.Secrets, func(secret string) bool { return !webhook.CanSign(secret) }) {
			return nil, errors.New("secrets: each must be whsec_ and the base64 of 24 to 64 random bytes, such as openssl rand -base64 32 prints")
		}
	}
	endpoints := func(ctx context.Context, m transporte.Message) (webhook.Endpoint, bool, error) {
		if e, ok := known[m.TenantID]; ok {
			return e, true, nil
		}
		key := m.TenantID
		if byDestination {
			key = m.Destination
		}
		e, found, err := find(ctx, key)
		if !found && err == nil && len(all.Secrets) > 0 {
			return all, true, nil
		}
		return e, found, err
	}
	sender, err := webhook.New(endpoints, webhook.Options{
		Timeout: c.Timeout.Std(), Allow: o.Allow, Ports: o.Ports, AllowHTTP: o.AllowHTTP, Development: o.Development, TLSConfig: authority,
		Gone: func(_ context.Context, m transporte.Message) {
			s.options.Log.Warn("endpoint wants no more webhooks", "channel", channel, "tenant", m.TenantID, "id", m.ID)
		},
	})
	if err != nil {
		return nil, err
	}
	return sender, checkURLs(sender, o)
}

// checkURLs finds the endpoints to which every message would be discarded. One without a URL has the message's destination.
func checkURLs(sender *webhook.Sender, o *config.Webhook) error {
	if o.URL != "" {
		if err := sender.CheckURL(o.URL); err != nil {
			return err
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(o.Tenants)) {
		if url := o.Tenants[tenant].URL; url != "" {
			if err := sender.CheckURL(url); err != nil {
				return &within{"tenants." + tenant, err}
			}
		}
	}
	return nil
}

func endpoint(e config.Endpoint) webhook.Endpoint {
	made := webhook.Endpoint{URL: e.URL, Permanent: e.Permanent}
	for _, secret := range e.Secrets {
		made.Secrets = append(made.Secrets, string(secret))
	}
	return made
}

// lookup finds what a tenant has: in the configuration, else by the query if there is one.
func lookup[C any](s *served, channel string, known map[string]C, query *config.Lookup) (credenciales.Lookup[C], error) {
	static := credenciales.Static(known)
	if query == nil {
		return static, nil
	}
	ask, err := credenciales.SQL(s.pool, query.Query, pgx.RowToStructByNameLax[C])
	if err != nil {
		return nil, err
	}
	cache, err := credenciales.New(ask, credenciales.Options{TTL: query.TTL.Std(), MissingTTL: query.MissingTTL.Std(), Max: query.Max})
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return func(ctx context.Context, tenant string) (C, bool, error) {
		if c, found, _ := static(ctx, tenant); found {
			return c, true, nil
		}
		c, found, err := cache.Find(ctx, tenant)
		if err != nil && ctx.Err() == nil { // the message only gets a code; what is wrong with the query stands here
			s.options.Log.Warn("look-up of credentials failed", "channel", channel, "err", err)
		}
		return c, found, err
	}, nil
}
