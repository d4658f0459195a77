package credenciales_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
)

// number is what a provider's function sends with. In earnest it is kapso.Credentials or meta.Credentials.
type number struct {
	APIKey        string
	PhoneNumberID string
}

func send(_ context.Context, n number, t transporte.Template) (string, error) {
	fmt.Printf("%s -> %s: %s\n", n.PhoneNumberID, t.To, t.Name)
	return "wamid.1", nil
}

// From a configuration: each tenant's number beside the one API key.
func ExampleStatic() {
	lookup := credenciales.Static(map[string]number{"club-7": {APIKey: "clave", PhoneNumberID: "10045"}})
	whatsapp, err := transporte.NewWhatsApp(lookup, send, transporte.WhatsAppOptions{})
	if err != nil {
		panic(err)
	}
	for _, tenant := range []string{"club-7", "club-8"} {
		fmt.Println(whatsapp.Send(context.Background(), transporte.Message{TenantID: tenant, Destination: "5491122334455", Template: "turno"}))
	}
	// Output:
	// 10045 -> 5491122334455: turno
	// wamid.1 <nil>
	//  send failed: credenciales (sin_credenciales)
}

// From a table of the application, where each column has the name of a field.
func ExampleSQL() {
	var pool *pgxpool.Pool // the relay's
	lookup, err := credenciales.SQL(pool, `
		select api_key, phone_number_id
		from numeros_whatsapp
		where organizacion_id = $1 and activo`, pgx.RowToStructByName[number])
	if err != nil {
		fmt.Println(err)
		return
	}
	cache, err := credenciales.New(lookup, credenciales.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = transporte.NewWhatsApp(cache.Find, send, transporte.WhatsAppOptions{})
	// Output: invalid options: credenciales.SQL: pool must not be nil
}

// Any function can stand behind a Cache, such as one that asks a vault.
func ExampleNew() {
	vault := func(ctx context.Context, tenantID string) (number, bool, error) {
		fmt.Println("asked for", tenantID) // with ctx
		return number{APIKey: "clave", PhoneNumberID: "10045"}, tenantID == "club-7", nil
	}
	cache, err := credenciales.New(vault, credenciales.Options{Max: 1000})
	if err != nil {
		panic(err)
	}
	for range 3 {
		n, found, err := cache.Find(context.Background(), "club-7")
		fmt.Println(n.PhoneNumberID, found, err)
	}
	fmt.Printf("%+v\n", cache)
	// Output:
	// asked for club-7
	// 10045 true <nil>
	// 10045 true <nil>
	// 10045 true <nil>
	// credenciales.Cache
}
