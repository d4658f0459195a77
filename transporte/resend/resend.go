// Package resend sends email by Resend's API.
//
//	r, err := resend.New(apiKey, resend.Options{})
//	correo, err := transporte.NewCorreo("Club <avisos@club.example>", render, r.Send)
//
// Resend keeps an idempotency key for 24 hours: an attempt whose outcome is unknown is tried again without a second email,
// provided that it renders to the same bytes. What it answers is in the table of faults.go; docs/providers.md says what to
// do about each.
package resend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/mail"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// maxKey is how long an idempotency key may be: https://resend.com/docs/dashboard/emails/idempotency-keys.
const maxKey = 256

// Options are what a Provider can do without.
type Options struct {
	// BaseURL is the API's address. Empty means https://api.resend.com.
	BaseURL string
	// Client makes the calls; it follows no redirect, whatever it says. Nil, and a nil Transport in it, mean one of the
	// package's own, which asks no proxy and keeps up to 64 idle connections.
	Client *http.Client
	// ReplyTo is the address that answers go to, perhaps with a name. Empty means that they go to the sender.
	ReplyTo string
}

// Provider sends emails with one API key. It may be used by several goroutines at once. There is nothing to close: idle
// connections end by themselves.
type Provider struct {
	client  *http.Client
	url     string
	apiKey  string
	replyTo string
}

// New returns a Provider. An apiKey that cannot be one (empty, a blank in it, a line break at its end) and options that make
// no sense give an error that wraps outbox.ErrInvalidOptions.
func New(apiKey string, opts Options) (*Provider, error) {
	if !httpsend.ValidKey(apiKey) {
		return nil, &outbox.OptionError{Field: "resend.New: apiKey", Reason: "must be printable ASCII without a blank or a line break"}
	}
	base, err := httpsend.BaseURL(opts.BaseURL, "https://api.resend.com")
	if err != nil {
		return nil, fmt.Errorf("resend.New: %w", err)
	}
	if opts.ReplyTo != "" {
		if _, err := mail.ParseAddress(opts.ReplyTo); err != nil {
			return nil, &outbox.OptionError{Field: "resend.New: ReplyTo", Reason: "must be one address, such as club@club.example"}
		}
	}
	return &Provider{httpsend.Client(opts.Client), base + "/emails", apiKey, opts.ReplyTo}, nil
}

// Send sends e and returns Resend's id of it; empty if Resend accepted it and the id could not be read. Accepted is not
// delivered: bounces and complaints come by Resend's webhooks.
//
// Its errors are *transporte.Error, by the table of faults.go, or of category red if no answer came: with code timeout,
// cancelado, dns, conexion, tls, sin_respuesta or respuesta_invalida. It returns soon after ctx ends.
//
// An idempotency key longer than 256 characters, or with others than printable ASCII, goes out as its SHA-256.
func (p *Provider) Send(ctx context.Context, e transporte.Email) (externalID string, err error) {
	header := http.Header{
		"Authorization": {"Bearer " + p.apiKey},
		"Content-Type":  {"application/json"},
		"User-Agent":    {"outbox-relay"}, // Resend refuses requests without one
	}
	if key := httpsend.FitKey(e.IdempotencyKey, maxKey); key != "" {
		header.Set("Idempotency-Key", key)
	}
	answer, err := httpsend.Post(ctx, p.client, p.url, header, p.body(e))
	if err != nil {
		return "", err
	}
	if !answer.OK() {
		return "", fault(answer)
	}
	return acceptedID(answer.Body), nil
}

// body is the same for the same email: Resend refuses a known idempotency key with another body.
func (p *Provider) body(e transporte.Email) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // HTML full of \u003c is half as long again
	_ = encoder.Encode(struct {  // texts only: it cannot fail
		From    string   `json:"from"`
		To      []string `json:"to"`
		Subject string   `json:"subject"`
		HTML    string   `json:"html,omitempty"`
		Text    string   `json:"text,omitempty"`
		ReplyTo string   `json:"reply_to,omitempty"`
	}{e.From, []string{e.To}, e.Subject, e.HTML, e.Text, p.replyTo})
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

// acceptedID reads {"id":"..."}. Whatever else a 200 says, the email has left.
func acceptedID(body []byte) string {
	var accepted struct{ ID string }
	if json.Unmarshal(body, &accepted) != nil {
		return ""
	}
	return httpsend.ID(accepted.ID)
}

// fault reads {"statusCode":422,"name":"missing_required_field","message":"..."}; from the edge it may be HTML.
func fault(answer httpsend.Answer) *transporte.Error {
	var said struct{ Name, Message string }
	_ = json.Unmarshal(answer.Body, &said) // a field of an unexpected type does not hide the other; neither has to be there
	return faults.Error(answer, said.Name, said.Message)
}
