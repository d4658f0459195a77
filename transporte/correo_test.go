package transporte_test

import (
	"context"
	"errors"
	"net/mail"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

var reminder = transporte.Rendered{Subject: "Tu turno", HTML: "<p>Mañana a las 10</p>", Text: "Mañana a las 10"}

// rendering returns a render that makes the same email of every message.
func rendering(r transporte.Rendered) func(transporte.Message) (transporte.Rendered, error) {
	return func(transporte.Message) (transporte.Rendered, error) { return r, nil }
}

// mailbox is a provider that keeps what it gets.
type mailbox struct{ got []transporte.Email }

func (b *mailbox) Send(_ context.Context, e transporte.Email) (string, error) {
	b.got = append(b.got, e)
	return "resend-1", nil
}

func newCorreo(t *testing.T, render func(transporte.Message) (transporte.Rendered, error),
	send func(context.Context, transporte.Email) (string, error)) *transporte.Correo {
	t.Helper()
	c, err := transporte.NewCorreo("Club <avisos@club.example>", render, send)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkFailure wants err to be an *Error of this category and code, and to say nothing of the given texts.
func checkFailure(t *testing.T, err error, category, code string, secrets ...string) {
	t.Helper()
	var failed *transporte.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got error %v, want a *transporte.Error", err)
	}
	if failed.Category != category || failed.Code != code {
		t.Errorf("got %s/%s, want %s/%s", failed.Category, failed.Code, category, code)
	}
	for _, s := range secrets {
		if strings.Contains(err.Error(), s) {
			t.Errorf("the error repeats %q: %v", s, err)
		}
	}
}

func TestCorreoHandsTheRenderedEmailToTheProvider(t *testing.T) {
	var box mailbox
	var rendered transporte.Message
	c := newCorreo(t, func(m transporte.Message) (transporte.Rendered, error) {
		rendered = m
		return reminder, nil
	}, box.Send)
	m := transporte.Message{ID: "row-1", Destination: " ana@club.example\n", Template: "turno", IdempotencyKey: "t1:turno-7"}
	id, err := c.Send(t.Context(), m)
	if err != nil || id != "resend-1" {
		t.Fatalf("got %q, %v, want the provider's id", id, err)
	}
	want := transporte.Email{
		From: "Club <avisos@club.example>", To: "ana@club.example",
		Subject: reminder.Subject, HTML: reminder.HTML, Text: reminder.Text,
		RowID: "row-1", IdempotencyKey: "t1:turno-7",
	}
	if len(box.got) != 1 || box.got[0] != want {
		t.Errorf("got %+v, want %+v once", box.got, want)
	}
	if rendered.Template != "turno" || rendered.ID != "row-1" {
		t.Errorf("render got %+v, want the message", rendered)
	}
}

func TestCorreoRefusesBeforeItCallsTheProvider(t *testing.T) {
	tests := []struct {
		name string
		to   string
		r    transporte.Rendered
		code string
	}{
		{"no address", "", reminder, "destino_vacio"},
		{"blank address", " \t", reminder, "destino_vacio"},
		{"address without at", "ana.club.example", reminder, "destino_invalido"},
		{"address without domain", "ana@", reminder, "destino_invalido"},
		{"address with a space", "ana maria@club.example", reminder, "destino_invalido"},
		{"two addresses", "ana@club.example, eva@club.example", reminder, "destino_invalido"},
		{"header in the address", "ana@club.example\r\nBcc: eva@club.example", reminder, "destino_invalido"},
		{"line break in a comment", "ana@club.example (\n)", reminder, "destino_invalido"},
		{"no subject", "ana@club.example", transporte.Rendered{HTML: "x"}, "asunto_vacio"},
		{"blank subject", "ana@club.example", transporte.Rendered{Subject: " \n", HTML: "x"}, "asunto_vacio"},
		{"header in the subject", "ana@club.example", transporte.Rendered{Subject: "a\nBcc: e@x", HTML: "x"}, "asunto_invalido"},
		{"carriage return in the subject", "ana@club.example", transporte.Rendered{Subject: "a\rb", HTML: "x"}, "asunto_invalido"},
		{"NUL in the subject", "ana@club.example", transporte.Rendered{Subject: "a\x00b", HTML: "x"}, "asunto_invalido"},
		{"no body", "ana@club.example", transporte.Rendered{Subject: "a"}, "cuerpo_vacio"},
		{"blank body", "ana@club.example", transporte.Rendered{Subject: "a", HTML: "\n", Text: " "}, "cuerpo_vacio"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var box mailbox
			c := newCorreo(t, rendering(test.r), box.Send)
			_, err := c.Send(t.Context(), transporte.Message{Destination: test.to})
			checkFailure(t, err, "rechazado", test.code, "ana", "eva", "Bcc")
			if len(box.got) != 0 {
				t.Error("the provider was called")
			}
		})
	}
}

func TestCorreoAcceptsEveryFormOfOneAddressAndEitherBody(t *testing.T) {
	for _, to := range []string{
		"ana@club.example", "Ana Pérez <ana@club.example>", `"Pérez, Ana" <ana@club.example>`,
		`"ana maría"@club.example`, "ana+turnos@niños.example", "ana@localhost",
	} {
		for _, r := range []transporte.Rendered{{Subject: "a\tb", HTML: "x"}, {Subject: "¡Hola!", Text: "x"}} {
			var box mailbox
			_, err := newCorreo(t, rendering(r), box.Send).Send(t.Context(), transporte.Message{Destination: to})
			if err != nil || len(box.got) != 1 || box.got[0].To != to {
				t.Errorf("to %s: got %+v, %v, want one email to it", to, box.got, err)
			}
		}
	}
}

func TestCorreoDiscardsAMessageThatDoesNotRender(t *testing.T) {
	tests := map[string]func(transporte.Message) (transporte.Rendered, error){
		"error": func(transporte.Message) (transporte.Rendered, error) {
			return reminder, errors.New("no name in ana@club.example")
		},
		"own category": func(transporte.Message) (transporte.Rendered, error) {
			return reminder, &transporte.Error{Category: outbox.Network, Code: "ana"}
		},
		"panic":     func(transporte.Message) (transporte.Rendered, error) { panic("ana@club.example") },
		"nil panic": func(transporte.Message) (transporte.Rendered, error) { panic(nil) },
	}
	for name, render := range tests {
		t.Run(name, func(t *testing.T) {
			var box mailbox
			_, err := newCorreo(t, render, box.Send).Send(t.Context(), transporte.Message{Destination: "ana@club.example"})
			checkFailure(t, err, "plantilla", "render", "ana")
			if len(box.got) != 0 {
				t.Error("the provider was called")
			}
		})
	}
}

func TestCorreoReturnsTheProvidersErrorAsItIs(t *testing.T) {
	for _, want := range []error{&transporte.Error{Category: outbox.Limit, Code: "429"}, context.DeadlineExceeded} {
		send := func(context.Context, transporte.Email) (string, error) { return "", want }
		_, err := newCorreo(t, rendering(reminder), send).Send(t.Context(), transporte.Message{Destination: "ana@club.example"})
		if err != want {
			t.Errorf("got %v, want %v itself", err, want)
		}
	}
}

func TestCorreoGivesTheProviderTheContextOfTheAttempt(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "attempt")
	var got any
	send := func(ctx context.Context, _ transporte.Email) (string, error) { got = ctx.Value(key{}); return "", nil }
	_, err := newCorreo(t, rendering(reminder), send).Send(ctx, transporte.Message{Destination: "ana@club.example"})
	if err != nil || got != "attempt" {
		t.Errorf("got %v, %v, want the context of Send", got, err)
	}
}

func TestNewCorreoNamesTheArgumentThatIsWrong(t *testing.T) {
	var box mailbox
	render := rendering(reminder)
	tests := []struct {
		from   string
		render func(transporte.Message) (transporte.Rendered, error)
		send   func(context.Context, transporte.Email) (string, error)
		names  string
	}{
		{"", render, box.Send, "from"},
		{"  ", render, box.Send, "from"},
		{"Club", render, box.Send, "from"},
		{"Club <avisos@club.example>\nBcc: e@x", render, box.Send, "from"},
		{"avisos@club.example (\n)", render, box.Send, "from"},
		{"avisos@club.example", nil, box.Send, "render"},
		{"avisos@club.example", render, nil, "send"},
	}
	for _, test := range tests {
		c, err := transporte.NewCorreo(test.from, test.render, test.send)
		if c != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "NewCorreo: "+test.names+" must") {
			t.Errorf("from %q: got %v, %v, want ErrInvalidOptions that names %s", test.from, c, err, test.names)
		}
	}
}

func FuzzCorreoPassesOnNoLineBreakAndOnlyAnAddress(f *testing.F) {
	f.Add("ana@club.example", "Hola")
	f.Add("Ana <ana@club.example> (a\r\nb)", "Hola\r\nBcc: eva@club.example")
	f.Add("\n\"a\\\nb\" <ana@club.example>\n", "Hola\n")
	f.Fuzz(func(t *testing.T, to, subject string) {
		var box mailbox
		r := transporte.Rendered{Subject: subject, Text: "x"}
		_, err := newCorreo(t, rendering(r), box.Send).Send(t.Context(), transporte.Message{Destination: to})
		if (err == nil) != (len(box.got) == 1) {
			t.Fatalf("got %v and %d emails", err, len(box.got))
		}
		for _, e := range box.got {
			if strings.ContainsAny(e.To+e.Subject, "\r\n\x00") {
				t.Errorf("a line break got through: %q, %q", e.To, e.Subject)
			}
			if _, err := mail.ParseAddress(e.To); err != nil {
				t.Errorf("%q got through: %v", e.To, err)
			}
		}
	})
}
