package resend_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/resend"
)

// Emails of the channel correo go out through Resend.
func Example() {
	provider, err := resend.New(os.Getenv("RESEND_API_KEY"), resend.Options{})
	if err != nil {
		fmt.Println("set RESEND_API_KEY")
		return
	}
	render := func(m transporte.Message) (transporte.Rendered, error) {
		return transporte.Rendered{Subject: "¡Hola!", Text: "Te damos la bienvenida."}, nil
	}
	correo, err := transporte.NewCorreo("Club <avisos@club.example>", render, provider.Send)
	if err != nil {
		panic(err)
	}
	var sender transporte.Sender = correo // for relay.Senders{"correo": sender}
	_ = sender
}

// A Provider can stand alone, and send to a stub.
func ExampleProvider_Send() {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"))
		fmt.Println(string(body))
		_, _ = io.WriteString(w, `{"id":"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}`)
	}))
	defer stub.Close()
	provider, err := resend.New("re_test", resend.Options{BaseURL: stub.URL})
	if err != nil {
		panic(err)
	}
	fmt.Println(provider.Send(context.Background(), transporte.Email{
		From: "avisos@club.example", To: "ana@club.example", Subject: "¡Hola!", Text: "Te damos la bienvenida.",
		IdempotencyKey: "club-7:bienvenida-31",
	}))
	// Output:
	// POST /emails club-7:bienvenida-31
	// {"from":"avisos@club.example","to":["ana@club.example"],"subject":"¡Hola!","text":"Te damos la bienvenida."}
	// 49a3999c-0ce1-4ea6-ab68-afcd6dc2e794 <nil>
}

// The error tells whether another attempt makes sense.
func ExampleProvider_Send_failure() {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"statusCode":429,"name":"rate_limit_exceeded","message":"Too many requests"}`)
	}))
	defer stub.Close()
	provider, err := resend.New("re_test", resend.Options{BaseURL: stub.URL})
	if err != nil {
		panic(err)
	}
	_, err = provider.Send(context.Background(), transporte.Email{From: "avisos@club.example", To: "ana@club.example", Subject: "x", Text: "y"})
	failed := err.(*transporte.Error)
	fmt.Println(failed, failed.RetryAfter, outbox.Classify(failed.Category))
	// Output: send failed: limite (rate_limit_exceeded) 2s transient
}
