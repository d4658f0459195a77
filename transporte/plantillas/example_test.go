package plantillas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
)

// turno is the data of a row of docs/templates.md.
var turno = json.RawMessage(`{"club": "Club Norte", "nombre": "Ana", "turno": {"id": 123, "dia": "martes 3", "hora": "10:00", "sala": null},
	"traer": ["el apto médico", "zapatillas"]}`)

func ExampleLoad() {
	set, err := plantillas.Load(os.DirFS("testdata/club"))
	if err != nil {
		panic(err) // with the file and the line
	}
	r, err := set.Email(transporte.Message{Template: "turno_confirmado", Data: turno})
	fmt.Println(err)
	fmt.Println(r.Subject)
	fmt.Println(r.Text)
	fmt.Println(r.HTML)
	// Output:
	// <nil>
	// Tu turno del martes 3 a las 10:00
	// Hola Ana:
	//
	// Te esperamos el martes 3 a las 10:00.
	// - traer: el apto médico
	// - traer: zapatillas
	//
	// Cambiar o cancelar: https://club.example/turnos/123
	//
	// <p>Hola Ana:</p>
	// <p>Te esperamos el martes 3 a las 10:00.</p>
	// <p>Para traer:</p>
	// <ul>
	//   <li>el apto médico</li>
	//   <li>zapatillas</li>
	// </ul>
	// <p><a href="https://club.example/turnos/123">Cambiar o cancelar</a></p>
	// <hr><p>Club Norte</p>
}

// One folder serves both channels.
func ExampleSet() {
	set, err := plantillas.Load(os.DirFS("testdata/club"))
	if err != nil {
		panic(err)
	}
	// In earnest the last argument is a provider's function, such as that of package resend or smtp.
	correo, err := transporte.NewCorreo("Club <avisos@club.example>", set.Email,
		func(_ context.Context, e transporte.Email) (string, error) {
			fmt.Printf("%s: %s\n", e.To, e.Subject)
			return "email-1", nil
		})
	if err != nil {
		panic(err)
	}
	whatsapp, err := transporte.NewWhatsApp(
		func(context.Context, string) (string, bool, error) { return "10045", true, nil },
		func(_ context.Context, _ string, t transporte.Template) (string, error) {
			fmt.Printf("%s: %s %q\n", t.To, t.Name, t.Parameters)
			return "wamid.1", nil
		},
		set.WhatsApp())
	if err != nil {
		panic(err)
	}
	m := transporte.Message{Template: "turno_confirmado", Data: turno, Destination: "ana@club.example"}
	fmt.Println(correo.Send(context.Background(), m))
	m.Destination = "5491122334455"
	fmt.Println(whatsapp.Send(context.Background(), m))

	m.Data = json.RawMessage(`{"nombre": "Ana"}`)
	fmt.Println(whatsapp.Send(context.Background(), m))
	// Output:
	// ana@club.example: Tu turno del martes 3 a las 10:00
	// email-1 <nil>
	// 5491122334455: turno_confirmado ["Ana" "martes 3" "10:00"]
	// wamid.1 <nil>
	//  send failed: plantilla (render)
}

// Without files: the paths come from a configuration.
func ExampleNewParameters() {
	parameters, err := plantillas.NewParameters(map[string][]string{
		"turno_confirmado": {"nombre", "turno.hora", "traer.0"},
		"bienvenida":       nil,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(parameters.Pick(transporte.Message{Template: "turno_confirmado", Data: turno}))
	fmt.Println(parameters.Pick(transporte.Message{Template: "turno_confirmado", Data: json.RawMessage(`{"nombre": "Ana"}`)}))
	// Output:
	// [Ana 10:00 el apto médico] <nil>
	// [] template "turno_confirmado", parameter 2 (turno.hora): a key is missing here
}

// A template that was made with {{nombre}} and {{hora}} in place of {{1}} and {{2}}.
func ExampleParameters_Names() {
	parameters, err := plantillas.NewParameters(map[string][]string{"recordatorio": {"nombre = nombre", "hora = turno.hora"}})
	if err != nil {
		panic(err)
	}
	m := transporte.Message{Template: "recordatorio", Data: turno}
	fmt.Println(parameters.Names(m))
	fmt.Println(parameters.Pick(m))
	// Output:
	// [nombre hora] <nil>
	// [Ana 10:00] <nil>
}

// A template that is approved in several languages: the row says which.
func ExampleParameters_Language() {
	parameters, err := plantillas.NewParameters(map[string][]string{"bienvenida": {"@idioma cliente.idioma", "cliente.nombre"}})
	if err != nil {
		panic(err)
	}
	m := transporte.Message{Template: "bienvenida", Data: json.RawMessage(`{"cliente": {"nombre": "João", "idioma": "pt_BR"}}`)}
	fmt.Println(parameters.Pick(m))
	fmt.Println(parameters.Language(m))
	// In earnest: transporte.NewWhatsApp(credentials, send, parameters.Options())
	// Output:
	// [João] <nil>
	// pt_BR <nil>
}
