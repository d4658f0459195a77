package transporte

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Print returns a Sender that writes each message to w as one line of JSON instead of sending it. It is for trying things
// out: the line shows recipient and data in full, and the relay records the row as sent, with "print-" and the row's id as
// the external id, though nobody received anything.
//
// Several goroutines may use it at once: a line is one call of w.Write, and only one runs at a time. A Write that fails is
// transient (category red, code escritura), and a part of the line may be out; while a Write blocks, so does Send. Data
// that is not JSON is permanent (category rechazado, code datos_invalidos).
func Print(w io.Writer) Func {
	var mu sync.Mutex // held for each call of w.Write
	return func(_ context.Context, m Message) (string, error) {
		line, err := printed(m)
		if err != nil {
			return "", &Error{Category: outbox.Rejected, Code: "datos_invalidos"}
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := w.Write(line); err != nil {
			return "", &Error{Category: outbox.Network, Code: "escritura"}
		}
		return "print-" + m.ID, nil
	}
}

// printed is m as a line of JSON, what a reader looks for first at its beginning.
func printed(m Message) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // people read it
	err := encoder.Encode(struct {
		Channel     string            `json:"channel"`
		Destination string            `json:"destination"`
		Template    string            `json:"template"`
		Data        json.RawMessage   `json:"data,omitempty"`
		ID          string            `json:"id"`
		Tenant      string            `json:"tenant"`
		Key         string            `json:"key"`
		Attempt     int               `json:"attempt"`
		OrderingKey string            `json:"ordering_key,omitempty"`
		Headers     map[string]string `json:"headers,omitempty"`
	}{
		m.Channel, m.Destination, m.Template, m.Data,
		m.ID, m.TenantID, m.IdempotencyKey, m.Attempt, m.OrderingKey, m.Headers,
	})
	return line.Bytes(), err
}
