package relay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// waits gives for each row the time from the writing of its result to its next attempt.
func (d database) waits(t *testing.T, condition string) (all []time.Duration) {
	t.Helper()
	rows, err := d.Query(t.Context(), "select extract(epoch from proximo_intento_en - actualizado_en)::float8 from outbox where estado = 'pendiente' and "+condition)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var seconds float64
		if err := rows.Scan(&seconds); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Duration(seconds*1000)*time.Millisecond)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestATransientFailureWaitsTwiceAsLongEachTimeUpToAnHour(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.exec(t, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, intentos, max_intentos)
		select gen_random_uuid(), 'correo', 'x', 'aviso', gen_random_uuid()::text, earlier, 100
		from generate_series(0, 12) earlier, generate_series(1, 15)`)
	summary := d.runOnce(t, func(context.Context, transporte.Message) (string, error) {
		return "", &transporte.Error{Category: "red", Code: "503"}
	}, relay.Options{Batch: 1000, Concurrency: 8})
	if summary.Retried != 13*15 {
		t.Errorf("got %+v, want %d retried", summary, 13*15)
	}
	d.wantCount(t, "estado = 'pendiente' and bloqueado_hasta is null and ultimo_error_categoria = 'red' and ultimo_error_codigo = '503'", 13*15)
	for earlier := range 13 {
		middle := min(30*time.Second<<earlier, time.Hour)
		different := make(map[time.Duration]bool)
		for _, wait := range d.waits(t, fmt.Sprintf("intentos = %d", earlier+1)) {
			different[wait] = true
			lowest, highest := middle*79/100, min(middle*121/100, time.Hour)
			if middle == time.Hour {
				lowest = middle * 66 / 100 // the jitter lies below the cap
			}
			if wait < lowest || wait > highest {
				t.Errorf("after %d earlier failures: got a wait of %v, want %v to %v", earlier, wait, lowest, highest)
			}
		}
		if len(different) < 8 {
			t.Errorf("after %d earlier failures: 15 rows got %d different waits, want them spread", earlier, len(different))
		}
	}
}

func TestTheNextAttemptHonoursWhatTheDestinationAskedFor(t *testing.T) {
	t.Parallel()
	d := open(t)
	// With a backoff of 10 s the longer of the two is seen.
	opts := relay.Options{Backoff: outbox.Backoff{Base: 10 * time.Second, Factor: 1, Jitter: -1}}
	failures := map[string]struct {
		err  error
		want time.Duration
	}{
		"plain":                        {&transporte.Error{Category: "red"}, 10 * time.Second},
		"a longer Retry-After":         {&transporte.Error{Category: "limite", RetryAfter: 90 * time.Second}, 90 * time.Second},
		"a shorter Retry-After":        {&transporte.Error{Category: "limite", RetryAfter: time.Second}, 10 * time.Second},
		"a negative Retry-After":       {&transporte.Error{Category: "limite", RetryAfter: -time.Hour}, 10 * time.Second},
		"a Retry-After of a week":      {&transporte.Error{Category: "limite", RetryAfter: 7 * 24 * time.Hour}, 24 * time.Hour},
		"a conflict":                   {&transporte.Error{Category: "conflicto_idempotencia"}, time.Minute},
		"a conflict and a Retry-After": {&transporte.Error{Category: "conflicto_idempotencia", RetryAfter: 5 * time.Minute}, 5 * time.Minute},
		"an unknown category":          {&transporte.Error{Category: "luna_llena"}, 10 * time.Second},
		"wrapped":                      {fmt.Errorf("provider: %w", &transporte.Error{Category: "limite", RetryAfter: time.Minute}), time.Minute},
		"another error":                {errors.New("connection reset"), 10 * time.Second},
	}
	for name := range failures {
		d.add(t, fields{"plantilla": "'" + name + "'"})
	}
	d.runOnce(t, func(_ context.Context, m transporte.Message) (string, error) { return "", failures[m.Template].err }, opts)
	for name, failure := range failures {
		waits := d.waits(t, "plantilla = '"+name+"'")
		if len(waits) != 1 || waits[0] != failure.want {
			t.Errorf("%s: got a wait of %v, want %v", name, waits, failure.want)
		}
	}
	d.wantCount(t, "plantilla = 'another error' and ultimo_error_categoria = 'red' and ultimo_error_codigo = 'transporte_excepcion'", 1)
	d.wantCount(t, "plantilla = 'an unknown category' and ultimo_error_categoria = 'luna_llena' and ultimo_error_codigo is null", 1)
}

func TestAMessageIsRetriedOnlyOnceItsWaitIsOver(t *testing.T) {
	t.Parallel()
	d := open(t)
	id := d.add(t, nil)
	fail := func(context.Context, transporte.Message) (string, error) { return "", &transporte.Error{} }
	d.runOnce(t, fail, relay.Options{})
	if summary := d.runOnce(t, fail, relay.Options{}); summary.Claimed != 0 {
		t.Errorf("got %+v, want nothing claimed during the wait", summary)
	}
	d.exec(t, "update outbox set proximo_intento_en = now()")
	if summary := d.runOnce(t, sent, relay.Options{}); summary.Sent != 1 {
		t.Errorf("got %+v, want it sent after the wait", summary)
	}
	d.wantRow(t, id, "estado = 'enviado' and intentos = 2 and ultimo_error_categoria is null and ultimo_error_codigo is null")
}

func TestATransientFailureOfTheLastAttemptEndsAsFallido(t *testing.T) {
	t.Parallel()
	d := open(t)
	last := d.add(t, fields{"intentos": "2", "max_intentos": "3"})
	only := d.add(t, fields{"max_intentos": "1"})
	second := d.add(t, fields{"intentos": "1", "max_intentos": "3"})
	summary := d.runOnce(t, func(context.Context, transporte.Message) (string, error) {
		return "", &transporte.Error{Category: "limite", Code: "131056"}
	}, relay.Options{})
	if summary.Failed != 2 || summary.Retried != 1 {
		t.Errorf("got %+v, want 2 failed and 1 retried", summary)
	}
	d.wantRow(t, last, "estado = 'fallido' and intentos = 3 and ultimo_error_categoria = 'limite' and ultimo_error_codigo = '131056' and bloqueado_hasta is null")
	d.wantRow(t, only, "estado = 'fallido' and intentos = 1")
	d.wantRow(t, second, "estado = 'pendiente' and intentos = 2")
}

func TestEachPermanentCategoryDiscardsAtOnce(t *testing.T) {
	t.Parallel()
	d := open(t)
	categories := []string{"credenciales", "rechazado", "facturacion", "plantilla", "numero", "ventana"}
	for _, category := range categories {
		d.add(t, fields{"plantilla": "'" + category + "'"})
	}
	summary := d.runOnce(t, func(_ context.Context, m transporte.Message) (string, error) {
		return "", &transporte.Error{Category: m.Template, Code: "c-" + m.Template, RetryAfter: time.Hour}
	}, relay.Options{})
	if summary.Discarded != len(categories) {
		t.Errorf("got %+v, want %d discarded", summary, len(categories))
	}
	d.wantCount(t, `estado = 'descartado' and intentos = 1 and ultimo_error_categoria = plantilla and ultimo_error_codigo = 'c-' || plantilla
		and proximo_intento_en is null and bloqueado_hasta is null`, len(categories))
}
