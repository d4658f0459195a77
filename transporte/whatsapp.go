package transporte

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Template is one WhatsApp template message as a provider's function gets it, checked. There is no free text: outside the
// 24 hours after the recipient's last message only templates are delivered, and nobody knows when a row is sent.
type Template struct {
	To         string   // 8 to 15 digits, country code first, perhaps after a "+"
	Name       string   // of the template
	Parameters []string // of its body: {{1}}, {{2}}, ... or, with Names, {{nombre}}, {{hora}}, ...
	// Names are those of Parameters, in the same order, if the template was made with names. None means that Parameters are
	// by position.
	Names []string
	// Language is the one that this message wants the template in: "es", "es_AR". Empty means the tenant's.
	Language string
	// RowID is the row's UUID: the same on every attempt. Providers that know no idempotency key echo it in their status
	// events (biz_opaque_callback_data).
	RowID string
	// IdempotencyKey is "tenant:key", the same on every attempt. Meta and Kapso have no place for it: there, an attempt
	// whose outcome is unknown may arrive twice.
	IdempotencyKey string
	Attempt        int // 1 for the first
}

// WhatsAppOptions are what a WhatsApp can do without.
type WhatsAppOptions struct {
	// Parameters makes the template's parameters out of a message, usually out of m.Data. Its error or panic discards the
	// message, and nobody sees the text of either. Nil means: the elements of m.Data if it is a JSON array of strings and
	// numbers, none if it is not an array, an error if the array holds anything else.
	Parameters func(m Message) ([]string, error)
	// Names gives the names of these parameters, in the same order, for a template that has names, and none for one that
	// has positions. Its error or panic discards the message, as that of Parameters does. Nil means always positions.
	Names func(m Message) ([]string, error)
	// Language gives the language that a message wants its template in, such as es_AR, empty for the tenant's. Its error or
	// panic discards the message, as that of Parameters does. Nil means always the tenant's.
	Language func(m Message) (string, error)
}

func (o WhatsAppOptions) parameters() func(Message) ([]string, error) {
	if o.Parameters == nil {
		return dataParameters
	}
	return o.Parameters
}

func (o WhatsAppOptions) names() func(Message) ([]string, error) {
	if o.Names == nil {
		return func(Message) ([]string, error) { return nil, nil }
	}
	return o.Names
}

func (o WhatsAppOptions) language() func(Message) (string, error) {
	if o.Language == nil {
		return func(Message) (string, error) { return "", nil }
	}
	return o.Language
}

// WhatsApp is a Sender for WhatsApp templates, where each tenant sends from a number of its own. C is whatever the
// provider's function needs to send for a tenant. It may be used by several goroutines at once if its functions may.
type WhatsApp[C any] struct {
	credentials func(context.Context, string) (C, bool, error)
	parameters  func(Message) ([]string, error)
	names       func(Message) ([]string, error)
	language    func(Message) (string, error)
	send        func(context.Context, C, Template) (string, error)
}

// NewWhatsApp returns a WhatsApp.
//
// The function credentials finds the credentials of a tenant, once for each attempt. Not found discards the message; an
// error is transient.
//
// The function send delivers the template and returns the provider's id, under the same contract as Sender.Send. The
// provider packages have one ready.
//
// A nil function gives an error that wraps outbox.ErrInvalidOptions.
func NewWhatsApp[C any](
	credentials func(ctx context.Context, tenantID string) (c C, found bool, err error),
	send func(ctx context.Context, c C, t Template) (externalID string, err error),
	opts WhatsAppOptions,
) (*WhatsApp[C], error) {
	switch {
	case credentials == nil:
		return nil, fmt.Errorf("%w: NewWhatsApp: credentials must not be nil", outbox.ErrInvalidOptions)
	case send == nil:
		return nil, fmt.Errorf("%w: NewWhatsApp: send must not be nil", outbox.ErrInvalidOptions)
	}
	return &WhatsApp[C]{credentials, opts.parameters(), opts.names(), opts.language(), send}, nil
}

// Send sends the template m.Template to the number in m.Destination.
//
// These failures are permanent and come before any look-up: category numero with code destino_vacio or destino_invalido
// (not 8 to 15 digits, with or without a "+" before them); category plantilla with code plantilla_vacia (no name), render
// (the parameters, their names or the language could not be made), parametro_vacio, or parametro_invalido (a line break, a tab, or more than four
// spaces in a row, which WhatsApp refuses). Then come category credenciales, code sin_credenciales, permanent; and
// category red, code credenciales_excepcion, transient, if the look-up fails. Whatever the provider's function returns is
// returned as it is.
func (w *WhatsApp[C]) Send(ctx context.Context, m Message) (string, error) {
	t, err := w.template(m)
	if err != nil {
		return "", err
	}
	c, found, err := w.credentials(ctx, m.TenantID)
	if err != nil {
		return "", &Error{Category: outbox.Network, Code: "credenciales_excepcion"}
	}
	if !found {
		return "", &Error{Category: outbox.Credentials, Code: "sin_credenciales"}
	}
	return w.send(ctx, c, t)
}

// template makes and checks what is sent, without I/O.
func (w *WhatsApp[C]) template(m Message) (Template, error) {
	switch {
	case strings.TrimSpace(m.Destination) == "":
		return Template{}, &Error{Category: outbox.Number, Code: "destino_vacio"}
	case !validNumber(m.Destination):
		return Template{}, &Error{Category: outbox.Number, Code: "destino_invalido"}
	case m.Template == "":
		return Template{}, &Error{Category: outbox.TemplateFault, Code: "plantilla_vacia"}
	}
	parameters, err := render(w.parameters, m)
	if err != nil {
		return Template{}, err
	}
	for _, p := range parameters {
		if err := checkParameter(p); err != nil {
			return Template{}, err
		}
	}
	names, err := render(w.names, m)
	if err != nil {
		return Template{}, err
	}
	language, err := render(w.language, m)
	if err != nil {
		return Template{}, err
	}
	return Template{
		To: m.Destination, Name: m.Template, Parameters: parameters, Names: names, Language: language,
		RowID: m.ID, IdempotencyKey: m.IdempotencyKey, Attempt: m.Attempt,
	}, nil
}

func validNumber(s string) bool {
	digits := strings.TrimPrefix(s, "+")
	return len(digits) >= 8 && len(digits) <= 15 && strings.Trim(digits, "0123456789") == ""
}

// checkParameter holds to what Meta accepts, which answers anything else with 132012, 132018 or 100.
func checkParameter(p string) error {
	switch {
	case p == "":
		return &Error{Category: outbox.TemplateFault, Code: "parametro_vacio"}
	case strings.ContainsAny(p, "\r\n\t") || strings.Contains(p, "     "):
		return &Error{Category: outbox.TemplateFault, Code: "parametro_invalido"}
	}
	return nil
}

// dataParameters is the default of WhatsAppOptions.Parameters.
func dataParameters(m Message) ([]string, error) {
	if len(m.Data) == 0 {
		return nil, nil
	}
	var data any
	decoder := json.NewDecoder(bytes.NewReader(m.Data))
	decoder.UseNumber() // 10.50 stays 10.50, and a long number keeps its digits
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	elements, _ := data.([]any)
	parameters := make([]string, 0, len(elements))
	for _, e := range elements {
		switch e := e.(type) {
		case string:
			parameters = append(parameters, e)
		case json.Number:
			parameters = append(parameters, e.String())
		default:
			return nil, errors.New("a parameter is neither a string nor a number")
		}
	}
	return parameters, nil
}
