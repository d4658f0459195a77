package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// account is what an organization sends WhatsApp messages with: a number of its own.
type account struct{ number, token string }

// accounts would be a table. The fourth organization has not set up WhatsApp.
var accounts = map[string]account{
	"00000000-0000-4000-8000-000000000001": {"1001", "demo-1"},
	"00000000-0000-4000-8000-000000000002": {"1002", "demo-2"},
	"00000000-0000-4000-8000-000000000003": {"1003", "demo-3"},
}

// newSenders gives the sender of each channel. Both use the provider at url.
func newSenders(url string) (relay.Senders, error) {
	// The relay bounds each call, so the client has no timeout of its own.
	a := api{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}}
	opts := transporte.WhatsAppOptions{Parameters: parameters}
	whatsapp, err := transporte.NewWhatsApp(credentials, a.sendTemplate, opts)
	if err != nil {
		return nil, err
	}
	correo, err := transporte.NewCorreo("Turnos <avisos@turnos.example>", render, a.sendEmail)
	if err != nil {
		return nil, err
	}
	return relay.Senders{"whatsapp": whatsapp, "correo": correo}, nil
}

func credentials(_ context.Context, tenant string) (account, bool, error) {
	a, found := accounts[tenant]
	return a, found, nil
}

// parameters fill {{1}} and {{2}} of a WhatsApp template.
func parameters(m transporte.Message) ([]string, error) {
	var d details
	err := json.Unmarshal(m.Data, &d)
	return []string{d.Name, d.Starts}, err
}

// render makes the same email of the same message on every attempt: providers refuse a known key with another body.
func render(m transporte.Message) (transporte.Rendered, error) {
	var d details
	if err := json.Unmarshal(m.Data, &d); err != nil {
		return transporte.Rendered{}, err
	}
	switch m.Template {
	case "turno_recordatorio":
		return transporte.Rendered{
			Subject: "Tu turno del " + d.Starts,
			Text:    "Hola, " + d.Name + ": te esperamos el " + d.Starts + ".",
		}, nil
	}
	return transporte.Rendered{}, fmt.Errorf("template %q is unknown", m.Template)
}

// api speaks HTTP with a provider.
type api struct {
	url    string
	client *http.Client
}

func (a api) sendTemplate(ctx context.Context, from account, t transporte.Template) (string, error) {
	body := map[string]any{"to": t.To, "template": t.Name, "parameters": t.Parameters}
	return a.post(ctx, "/whatsapp/"+from.number, from.token, t.IdempotencyKey, body)
}

func (a api) sendEmail(ctx context.Context, e transporte.Email) (string, error) {
	body := map[string]any{"from": e.From, "to": e.To, "subject": e.Subject, "text": e.Text}
	return a.post(ctx, "/correo", "demo", e.IdempotencyKey, body)
}

// post makes one request and gives the provider's id of the message.
func (a api) post(ctx context.Context, path, token, key string, body any) (string, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, bytes.NewReader(encoded))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Idempotency-Key", key) // ours are ASCII; others would be hashed
	response, err := a.client.Do(request)
	if err != nil {
		return "", unanswered(ctx, err)
	}
	defer response.Body.Close()
	var answer struct{ ID, Code string }
	// A 2xx that cannot be read is a success without an id: the message has left.
	_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer)
	if response.StatusCode/100 == 2 {
		return answer.ID, nil
	}
	return "", refused(response, answer.Code)
}

// unanswered tells a request that never left from one that may have arrived.
func unanswered(ctx context.Context, err error) error {
	var network *net.OpError
	switch {
	case errors.As(err, &network) && network.Op == "dial":
		return &transporte.Error{Category: outbox.Network, Code: "sin_conexion"}
	case ctx.Err() != nil:
		return &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}
	}
	return &transporte.Error{Category: outbox.Network, Code: "sin_respuesta", Uncertain: true}
}

// refused says what an answer other than 2xx means. The provider's code is more exact than the status.
func refused(r *http.Response, code string) error {
	e := &transporte.Error{Category: outbox.Rejected, Code: cmp.Or(code, strconv.Itoa(r.StatusCode))}
	switch {
	case code == "132001": // Meta's code for a template that does not exist
		e.Category = outbox.TemplateFault
	case r.StatusCode == http.StatusTooManyRequests:
		e.Category, e.RetryAfter = outbox.Limit, retryAfter(r.Header.Get("Retry-After"))
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		e.Category = outbox.Credentials
	case r.StatusCode == http.StatusRequestTimeout, r.StatusCode >= 500:
		e.Category = outbox.Network
	}
	return e
}

// retryAfter reads both forms of the header (RFC 9110, section 10.2.3): seconds, or a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(seconds, 24*3600)) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, time.Until(date))
}
