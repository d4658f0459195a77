package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// logged keeps every line of a log, also those of level Debug.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug - 100, AddSource: true}))
}

func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

// The marker stands for a recipient, a payload, a provider's text: whatever must not be told.
const marker = "MARCA"

func TestNoRecipientPayloadOrProviderTextIsLoggedOrStoredAsAnError(t *testing.T) {
	t.Parallel()
	d := open(t)
	// What the database says when it refuses a result may quote the whole row.
	d.exec(t, `create function refuse() returns trigger language plpgsql as
		$$ begin raise 'refused: %', new using detail = new::text, hint = new::text; end $$;
		create trigger refuse before update on outbox for each row when (length(new.id_externo) > 20) execute function refuse()`)
	answers := map[string]func() (string, error){
		"sent":          func() (string, error) { return "", nil },
		"refused":       func() (string, error) { return marker + strings.Repeat("x", 20), nil },
		"plain":         func() (string, error) { return marker, errors.New(marker) },
		"wrapped":       func() (string, error) { return "", fmt.Errorf(marker+": %w", &transporte.Error{Category: "limite"}) },
		"permanent":     func() (string, error) { return "", fmt.Errorf(marker+": %w", &transporte.Error{Category: "numero"}) },
		"panic":         func() (string, error) { panic(marker) },
		"panic (error)": func() (string, error) { panic(errors.New(marker)) },
		"panic (value)": func() (string, error) { panic(struct{ to string }{marker}) },
	}
	for template := range answers {
		d.add(t, fields{"plantilla": "'" + template + "'", "destino": "'" + marker + "'", "datos": `'{"` + marker + `": "` + marker + `"}'`,
			"clave_idempotencia": "'" + marker + template + "'", "cabeceras": `'{"` + marker + `": "` + marker + `"}'`,
			"clave_orden": "'" + marker + "'"})
	}
	d.add(t, fields{"canal": "'sin_transporte'", "destino": "'" + marker + "'"})
	d.add(t, fields{"intentos": "5", "destino": "'" + marker + "'"})
	log := new(logged)
	recorded := make(chan struct{}, len(answers)+2)
	stop := d.start(t, func(_ context.Context, m transporte.Message) (string, error) { return answers[m.Template]() },
		relay.Options{Log: log.logger(), Observer: relay.Observer{Recorded: func(relay.Recorded) { recorded <- struct{}{} }}})
	for range cap(recorded) {
		receive(t, recorded, "an outcome")
	}
	stop()
	lines := log.lines()
	if len(lines) < len(answers)+3 {
		t.Errorf("got %d lines, want at least one for each message, so that there is something to look at", len(lines))
	}
	for _, line := range lines {
		if strings.Contains(line, marker) {
			t.Errorf("the log tells what it must not: %s", line)
		}
	}
	d.wantCount(t, "concat(ultimo_error_categoria, ultimo_error_codigo, id_externo) like '%"+marker+"%'", 0)
	d.wantCount(t, "estado = 'procesando'", 1) // the refused one
}
