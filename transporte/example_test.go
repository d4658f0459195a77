package transporte_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Any function can be a Sender. It says what a failure means with an *Error.
func ExampleFunc() {
	var post transporte.Sender = transporte.Func(func(ctx context.Context, m transporte.Message) (string, error) {
		status := http.StatusTooManyRequests // of a request made with ctx
		if status == http.StatusTooManyRequests {
			return "", &transporte.Error{Category: outbox.Limit, Code: "429"}
		}
		return "ticket-1", nil
	})

	_, err := post.Send(context.Background(), transporte.Message{Destination: "https://club.example/hook"})
	fmt.Println(err)
	// Output: send failed: limite (429)
}

func ExampleNewCorreo() {
	render := func(m transporte.Message) (transporte.Rendered, error) {
		switch m.Template {
		case "bienvenida":
			var data struct{ Nombre string }
			if err := json.Unmarshal(m.Data, &data); err != nil {
				return transporte.Rendered{}, err
			}
			return transporte.Rendered{Subject: "¡Hola, " + data.Nombre + "!", Text: "Te damos la bienvenida."}, nil
		}
		return transporte.Rendered{}, fmt.Errorf("template %q is unknown", m.Template)
	}
	// In earnest this is a provider's function, such as that of package resend or smtp.
	send := func(ctx context.Context, e transporte.Email) (string, error) {
		fmt.Printf("%s -> %s: %s\n", e.From, e.To, e.Subject)
		return "email-1", nil
	}

	correo, err := transporte.NewCorreo("Club <avisos@club.example>", render, send)
	if err != nil {
		panic(err)
	}
	id, err := correo.Send(context.Background(), transporte.Message{
		Destination: "ana@club.example",
		Template:    "bienvenida",
		Data:        json.RawMessage(`{"nombre": "Ana"}`),
	})
	fmt.Println(id, err)

	_, err = correo.Send(context.Background(), transporte.Message{Destination: "ana@club.example", Template: "bienvenido"})
	fmt.Println(err)
	// Output:
	// Club <avisos@club.example> -> ana@club.example: ¡Hola, Ana!
	// email-1 <nil>
	// send failed: plantilla (render)
}

func ExampleNewWhatsApp() {
	// What the provider's function needs: with Kapso one API key opens every number, so a tenant has only its number's id.
	type account struct{ phoneNumberID string }
	accounts := map[string]account{"club-7": {"10045"}}

	whatsapp, err := transporte.NewWhatsApp(
		func(ctx context.Context, tenantID string) (account, bool, error) {
			a, found := accounts[tenantID] // usually a query, made with ctx
			return a, found, nil
		},
		// In earnest this is a provider's function, such as that of package kapso or meta.
		func(ctx context.Context, a account, t transporte.Template) (string, error) {
			fmt.Printf("%s -> %s: %s %q\n", a.phoneNumberID, t.To, t.Name, t.Parameters)
			return "wamid.1", nil
		},
		transporte.WhatsAppOptions{},
	)
	if err != nil {
		panic(err)
	}
	m := transporte.Message{
		TenantID:    "club-7",
		Destination: "5491122334455",
		Template:    "turno_manana",
		Data:        json.RawMessage(`["Ana", "10:00"]`),
	}
	fmt.Println(whatsapp.Send(context.Background(), m))

	m.TenantID = "club-8"
	_, err = whatsapp.Send(context.Background(), m)
	fmt.Println(err)
	// Output:
	// 10045 -> 5491122334455: turno_manana ["Ana" "10:00"]
	// wamid.1 <nil>
	// send failed: credenciales (sin_credenciales)
}

// Data need not be an array: Parameters may pick what the template wants.
func ExampleWhatsAppOptions() {
	whatsapp, err := transporte.NewWhatsApp(
		func(context.Context, string) (string, bool, error) { return "10045", true, nil },
		func(_ context.Context, _ string, t transporte.Template) (string, error) {
			fmt.Printf("%q\n", t.Parameters)
			return "wamid.1", nil
		},
		transporte.WhatsAppOptions{Parameters: func(m transporte.Message) ([]string, error) {
			var data struct{ Nombre, Hora string }
			err := json.Unmarshal(m.Data, &data)
			return []string{data.Nombre, data.Hora}, err
		}},
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(whatsapp.Send(context.Background(), transporte.Message{
		Destination: "5491122334455",
		Template:    "turno_manana",
		Data:        json.RawMessage(`{"nombre": "Ana", "hora": "10:00"}`),
	}))
	// Output:
	// ["Ana" "10:00"]
	// wamid.1 <nil>
}

func ExamplePrint() {
	id, err := transporte.Print(os.Stdout).Send(context.Background(), transporte.Message{
		ID:             "0d7a3c52-b1f0-4e7f-8a90-112233445566",
		TenantID:       "club-7",
		Channel:        "correo",
		Destination:    "ana@club.example",
		Template:       "bienvenida",
		Data:           json.RawMessage(`{"nombre": "Ana"}`),
		IdempotencyKey: "club-7:bienvenida-31",
		Attempt:        1,
	})
	fmt.Println(id, err)
	// Output:
	// {"channel":"correo","destination":"ana@club.example","template":"bienvenida","data":{"nombre":"Ana"},"id":"0d7a3c52-b1f0-4e7f-8a90-112233445566","tenant":"club-7","key":"club-7:bienvenida-31","attempt":1}
	// print-0d7a3c52-b1f0-4e7f-8a90-112233445566 <nil>
}
