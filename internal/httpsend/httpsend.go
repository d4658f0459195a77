// Package httpsend is one HTTP call of a sender: what the providers and the webhooks share, and no user may touch.
//
//	client := httpsend.Client(opts.Client)                    // once: no proxy, no redirects, connections kept
//	base, err := httpsend.BaseURL(opts.BaseURL, "https://...") // once: checked, without a slash at its end
//	key := httpsend.FitKey(m.IdempotencyKey, 256)             // printable ASCII that fits, or its hash; never cut
//	if !httpsend.Printable(apiKey) { ... }                    // what may stand in a header, told before the call
//
//	answer, err := httpsend.Post(ctx, client, base+"/emails", header, body)
//	if err != nil {
//		return "", err // *transporte.Error: no answer came, and Uncertain says whether the request may have arrived
//	}
//	if !answer.OK() {
//		return "", faults.Error(answer, code, text) // *transporte.Error by the provider's Table
//	}
//	return httpsend.ID(id), nil // "" if the body made no sense: the message has left
//
// A Table is what a provider's page says, row by row: status, code and category. Nothing that a provider wrote gets into
// an error, except for a code that looks like a machine's.
package httpsend

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const (
	// maxBody is how much of an answer is read and kept. As much again is read and dropped, so that the connection can be
	// used again; one with more to say is closed.
	maxBody = 64 << 10
	// longestCall bounds a call whose context has no deadline.
	longestCall = time.Minute
)

// Answer is what a destination answered. It may be any status; the body may be empty, cut off or not what was expected.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // the first 64 KiB, or what came before the connection broke or ctx ended
}

// OK tells whether the destination took the request.
func (a Answer) OK() bool { return a.Status >= 200 && a.Status <= 299 }

// ID returns a destination's id of a message as it can be stored: id itself, or "" if it is longer than 256 characters or
// not Printable.
func ID(id string) string {
	if len(id) > 256 || !Printable(id) {
		return ""
	}
	return id
}

// Post sends body to url and reads the answer. The header gets nothing added but what HTTP needs; it is not changed.
//
// It returns soon after ctx ends; a ctx without a deadline gets a minute. An answer whose body cannot be read is an answer
// all the same: its status is known.
//
// Every error is a *transporte.Error: transient, category red, with code timeout, cancelado, dns, conexion, tls,
// sin_respuesta (the connection broke before an answer) or respuesta_invalida (it broke within the answer, or that is not
// HTTP). Its Uncertain is set if the request's headers were written. A *transporte.Error of the client's transport or
// dialer comes back as it is. A url or a header that cannot be sent is permanent: rechazado, code peticion_invalida.
//
// A connection that breaks before any answer makes net/http send a request with an Idempotency-Key header once more.
func Post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) (Answer, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longestCall)
		defer cancel()
	}
	var t trace
	request, err := http.NewRequestWithContext(t.watch(ctx), http.MethodPost, url, bytes.NewReader(body))
	if err != nil || !sendable(header) {
		return Answer{}, &transporte.Error{Category: outbox.Rejected, Code: "peticion_invalida"}
	}
	request.Header = header.Clone()
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, t.failure(ctx, err)
	}
	defer response.Body.Close()
	// The message has left, whatever becomes of the body.
	read, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err == nil {
		_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	}
	return Answer{response.StatusCode, response.Header, read}, nil
}
