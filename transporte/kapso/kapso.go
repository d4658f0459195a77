// Package kapso sends WhatsApp templates by Kapso, which stands before Meta's Cloud API.
//
//	k, err := kapso.New(kapso.Options{})
//	whatsapp, err := transporte.NewWhatsApp(credentials, k.Send, transporte.WhatsAppOptions{})
//
// The function credentials finds a tenant's Credentials. A key of Kapso opens every number of its project, so that usually
// only the number's id differs from tenant to tenant. There is no idempotency key: an attempt whose outcome is unknown is
// tried again and may arrive twice. The row's id goes along (biz_opaque_callback_data) and comes back in every event about
// the message. What Kapso answers is in the table of faults.go; docs/providers.md says what to do about each.
package kapso

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/whatsappcloud"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Options are what a Provider can do without.
type Options struct {
	// BaseURL is the address of Kapso's Meta proxy with the version of the Graph API. Empty means
	// https://api.kapso.ai/meta/whatsapp/v24.0.
	BaseURL string
	// Client makes the calls; it follows no redirect, whatever it says. Nil, and a nil Transport in it, mean one of the
	// package's own, which asks no proxy and keeps up to 64 idle connections.
	Client *http.Client
	// Language is the language of the templates of tenants that have none of their own: "es", "es_AR". Empty means es_AR.
	Language string
}

// Credentials are what a tenant sends with.
type Credentials struct {
	APIKey        string // of the project that the number belongs to
	PhoneNumberID string // Meta's id of the tenant's number, not the number: "106540352242922"
	// Language is the language that the tenant's templates were approved in, for messages that ask for none. Empty means
	// Options.Language.
	Language string
}

// Format prints the number's id only, so that a log of the credentials holds no secret.
func (c Credentials) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "kapso.Credentials{PhoneNumberID:%s}", c.PhoneNumberID)
}

// Check gives an outbox.OptionError if Send would refuse c for every message. What is empty is left out: it may come from
// elsewhere.
func (c Credentials) Check() error {
	return whatsappcloud.Check("APIKey", c.APIKey, c.PhoneNumberID, c.Language)
}

// Provider sends templates for any number of tenants. It may be used by several goroutines at once. There is nothing to
// close: idle connections end by themselves.
type Provider struct {
	client   *http.Client
	base     string
	language string
}

// New returns a Provider. Options that make no sense give an error that wraps outbox.ErrInvalidOptions.
func New(opts Options) (*Provider, error) {
	base, err := httpsend.BaseURL(opts.BaseURL, "https://api.kapso.ai/meta/whatsapp/v24.0")
	if err != nil {
		return nil, fmt.Errorf("kapso.New: %w", err)
	}
	language := cmp.Or(opts.Language, whatsappcloud.DefaultLanguage)
	if !whatsappcloud.ValidLanguage(language) {
		return nil, &outbox.OptionError{Field: "kapso.New: Language", Reason: "must be like es or es_AR"}
	}
	return &Provider{httpsend.Client(opts.Client), base, language}, nil
}

// Send sends t from c's number and returns WhatsApp's id of the message (wamid); empty if Kapso accepted it and the id
// could not be read. Accepted is not delivered: most failures that concern the recipient come by Kapso's webhooks.
//
// Its errors are *transporte.Error. Before any call: credenciales, permanent, with code clave_invalida (the key is empty, or
// has a blank or something else than printable ASCII in it) or numero_emisor_invalido (the id is not made of digits); plantilla, permanent, with code
// idioma_invalido or nombres_invalidos (not one name for each parameter, or not as Meta writes them). Then by the table, or of
// category red if no answer came: with code timeout, cancelado, dns, conexion, tls, sin_respuesta or respuesta_invalida. It
// returns soon after ctx ends.
func (p *Provider) Send(ctx context.Context, c Credentials, t transporte.Template) (externalID string, err error) {
	if !httpsend.ValidKey(c.APIKey) {
		return "", &transporte.Error{Category: outbox.Credentials, Code: "clave_invalida"}
	}
	from := whatsappcloud.Number{
		BaseURL: p.base, PhoneNumberID: c.PhoneNumberID, Language: cmp.Or(c.Language, p.language), Faults: faults,
	}
	return whatsappcloud.Send(ctx, p.client, from, http.Header{"X-Api-Key": {c.APIKey}}, t)
}
