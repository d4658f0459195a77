package meta_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/meta"
)

// Each tenant sends from its own number.
func Example() {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"messages":[{"id":"wamid.1"}]}`)
	}))
	defer stub.Close()
	provider, err := meta.New(meta.Options{BaseURL: stub.URL}) // in earnest without a BaseURL
	if err != nil {
		panic(err)
	}
	tenants := map[string]meta.Credentials{
		"club-7": {Token: "token-of-7", PhoneNumberID: "106540352242922"},
		"club-8": {Token: "token-of-8", PhoneNumberID: "106540352242923", Language: "pt_BR"},
	}
	whatsapp, err := transporte.NewWhatsApp(
		func(ctx context.Context, tenantID string) (meta.Credentials, bool, error) {
			c, found := tenants[tenantID] // usually a query, made with ctx
			return c, found, nil
		},
		provider.Send,
		transporte.WhatsAppOptions{},
	)
	if err != nil {
		panic(err)
	}
	for _, tenant := range []string{"club-7", "club-8", "club-9"} {
		fmt.Println(whatsapp.Send(context.Background(), transporte.Message{
			TenantID:    tenant,
			Destination: "5491145678901",
			Template:    "turno_manana",
			Data:        json.RawMessage(`["Ana", "10:00"]`),
		}))
	}
	// Output:
	// /106540352242922/messages Bearer token-of-7
	// wamid.1 <nil>
	// /106540352242923/messages Bearer token-of-8
	// wamid.1 <nil>
	//  send failed: credenciales (sin_credenciales)
}

// A Provider can stand alone. The error tells what the code means.
func ExampleProvider_Send() {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"(#132001) Template name does not exist","code":132001}}`)
	}))
	defer stub.Close()
	provider, err := meta.New(meta.Options{BaseURL: stub.URL, Language: "es"})
	if err != nil {
		panic(err)
	}
	_, err = provider.Send(context.Background(),
		meta.Credentials{Token: "key", PhoneNumberID: "106540352242922"},
		transporte.Template{To: "5491145678901", Name: "turno_manana", Parameters: []string{"Ana", "10:00"}})
	fmt.Println(err)
	// Output: send failed: plantilla (132001)
}
