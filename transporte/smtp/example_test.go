package smtp_test

import (
	"context"
	"fmt"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

func ExampleNew() {
	s := &server{} // in earnest "smtp.club.example:587"
	s.listen()
	defer s.stop()

	client, err := smtp.New(s.addr, smtp.Options{
		// Username and Password of the account; the server must then offer STARTTLS.
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	render := func(m transporte.Message) (transporte.Rendered, error) {
		return transporte.Rendered{Subject: "Tu turno", Text: "Mañana a las 10", HTML: "<p>Mañana a las 10</p>"}, nil
	}
	correo, err := transporte.NewCorreo("Club <avisos@club.example>", render, client.Send)
	if err != nil {
		panic(err)
	}
	fmt.Println(correo.Send(context.Background(), transporte.Message{
		ID:          "0d7a3c52-b1f0-4e7f-8a90-112233445566",
		Destination: "Ana <ana@destino.example>",
	}))
	// Output:
	// <0d7a3c52-b1f0-4e7f-8a90-112233445566@club.example> QUEUE-1 <nil>
}

// Resend also listens for SMTP, and takes the idempotency key in a header.
func ExampleOptions_resend() {
	client, err := smtp.New("smtp.resend.com:465", smtp.Options{
		TLS:               smtp.ImplicitTLS,
		Username:          "resend",
		Password:          "the API key",
		IdempotencyHeader: "Resend-Idempotency-Key",
	})
	fmt.Println(client != nil, err)
	// Output: true <nil>
}

// Gmail and Exchange Online take an OAuth token in place of a password.
func ExampleOptions_token() {
	client, err := smtp.New("smtp.gmail.com:587", smtp.Options{
		Username: "avisos@club.example",
		Token: func(ctx context.Context) (string, error) {
			return "ya29.a0", nil // in earnest Token().AccessToken of an oauth2.ReuseTokenSource
		},
	})
	fmt.Println(client != nil, err)
	// Output: true <nil>
}
