package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

// Endpoints come from a table of the application, and may change between two attempts.
func ExampleNew() {
	// The receiver verifies with the library of its language.
	const secret = "whsec_ZXhhbXBsZS1leGFtcGxlLWV4YW1wbGUh"
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verifier, _ := standardwebhooks.NewWebhook(secret)
		fmt.Println(r.Header.Get("webhook-id"), string(body), verifier.Verify(body, r.Header))
	}))
	defer receiver.Close()

	endpoints := map[string]webhook.Endpoint{
		"club-7": {URL: receiver.URL, Secrets: []string{secret}}, // while one is replaced, the new one first
	}
	sender, err := webhook.New(
		func(ctx context.Context, m transporte.Message) (webhook.Endpoint, bool, error) {
			e, found := endpoints[m.TenantID] // usually a query, made with ctx, behind a credenciales.Cache
			return e, found, nil
		},
		webhook.Options{
			Development: true, // the receiver is on this host
			Gone: func(_ context.Context, m transporte.Message) {
				fmt.Println("disable the endpoint of", m.TenantID) // it answered 410
			},
		},
	)
	if err != nil {
		panic(err)
	}
	m := transporte.Message{
		ID:       "0d7a3c52-b1f0-4e7f-8a90-112233445566",
		TenantID: "club-7",
		Data:     json.RawMessage(`{"type":"pedido.creado"}`),
	}
	fmt.Println(sender.Send(context.Background(), m))

	m.TenantID = "club-8"
	_, err = sender.Send(context.Background(), m)
	fmt.Println(err)
	// Output:
	// 0d7a3c52-b1f0-4e7f-8a90-112233445566 {"type":"pedido.creado"} <nil>
	// 0d7a3c52-b1f0-4e7f-8a90-112233445566 <nil>
	// send failed: rechazado (endpoint_inexistente)
}
