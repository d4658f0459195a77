package relay_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestRunOnceSendsWhatIsDueAndRecordsIt(t *testing.T) {
	t.Parallel()
	d := open(t)
	id := d.add(t, fields{"canal": "'correo'", "destino": "'ana@example.com'", "plantilla": "'bienvenida'", "datos": `'{"n": 1}'`,
		"clave_idempotencia": "'alta:7'", "intentos": "1", "max_intentos": "4", "programado_para": "timestamptz '2026-03-08 12:00:00Z'",
		"clave_orden": "'cliente-7'", "cabeceras": `'{"traceparent": "00-ab", "n": 1, "lista": [1, "b"]}'`})
	var got transporte.Message
	summary := d.runOnce(t, func(_ context.Context, m transporte.Message) (string, error) {
		got = m
		return "re_123", nil
	}, relay.Options{})
	if want := (relay.Summary{Claimed: 1, Sent: 1}); !reflect.DeepEqual(withoutWarnings(summary), want) {
		t.Errorf("got %+v, want %+v", summary, want)
	}
	got.ScheduledFor = got.ScheduledFor.UTC()
	want := transporte.Message{ID: id, TenantID: "6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f", Channel: "correo", Destination: "ana@example.com",
		Template: "bienvenida", Data: []byte(`{"n": 1}`), IdempotencyKey: "6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f:alta:7", Attempt: 2,
		MaxAttempts: 4, ScheduledFor: time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC), OrderingKey: "cliente-7",
		Headers: map[string]string{"traceparent": "00-ab", "n": "1", "lista": `[1, "b"]`}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	d.wantRow(t, id, `estado = 'enviado' and intentos = 2 and id_externo = 're_123' and enviado_en is not null and bloqueado_hasta is null`)
}

func TestRunOnceLeavesWhatIsNotDue(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.add(t, fields{"programado_para": "now() + interval '1 minute'"})
	d.add(t, fields{"intentos": "1", "proximo_intento_en": "now() + interval '1 minute'"})
	d.add(t, fields{"estado": "'procesando'", "intentos": "1", "bloqueado_hasta": "now() + interval '1 minute'"})
	due := d.add(t, fields{"programado_para": "now() - interval '1 minute'"})
	var received receiver
	if summary := d.runOnce(t, received.Send, relay.Options{}); summary.Claimed != 1 {
		t.Errorf("claimed %d messages, want 1", summary.Claimed)
	}
	received.wantEachOnce(t, 1)
	d.wantRow(t, due, "estado = 'enviado'")
}

func TestRunOnceTakesNoMoreThanABatchAndTheOldestFirst(t *testing.T) {
	t.Parallel()
	d := open(t)
	for range 5 {
		d.add(t, nil)
	}
	old := d.add(t, fields{"programado_para": "now() - interval '1 minute'"})
	var received receiver
	summary := d.runOnce(t, received.Send, relay.Options{Batch: 3})
	if summary.Claimed != 3 || summary.Sent != 3 {
		t.Errorf("got %+v, want 3 claimed and sent", summary)
	}
	d.wantRow(t, old, "estado = 'enviado'")
	d.wantCount(t, "estado = 'pendiente' and intentos = 0", 3)
}

func TestTheSummaryCountsEachOutcome(t *testing.T) {
	t.Parallel()
	d := open(t)
	templates := map[string]error{"sent": nil, "lost": nil, "retried": &transporte.Error{}, "failed": &transporte.Error{}, "discarded": &transporte.Error{Category: "numero"}}
	for range 2 {
		for template := range templates {
			d.add(t, fields{"plantilla": "'" + template + "'", "intentos": map[bool]string{true: "4", false: "0"}[template == "failed"]})
		}
	}
	d.add(t, fields{"intentos": "5"}) // closed by the claim
	summary := d.runOnce(t, func(ctx context.Context, m transporte.Message) (string, error) {
		if m.Template == "lost" {
			_, err := d.Exec(ctx, "update outbox set bloqueado_hasta = now() + interval '1 hour' where id = $1::uuid", m.ID)
			return "", err
		}
		return "", templates[m.Template]
	}, relay.Options{})
	want := relay.Summary{Claimed: 11, Sent: 2, Retried: 2, Failed: 3, Discarded: 2, Lost: 2}
	if !reflect.DeepEqual(withoutWarnings(summary), want) {
		t.Errorf("got %+v, want %+v", summary, want)
	}
}

func TestAChannelWithoutASenderIsDiscardedUnlessToBeLeftAlone(t *testing.T) {
	t.Parallel()
	d := open(t)
	id := d.add(t, fields{"canal": "'paloma'"})
	if summary := d.runOnce(t, sent, relay.Options{LeaveUnknownChannels: true}); summary.Claimed != 0 {
		t.Errorf("got %+v, want nothing claimed", summary)
	}
	d.wantRow(t, id, "estado = 'pendiente' and intentos = 0")
	if summary := d.runOnce(t, sent, relay.Options{}); summary.Discarded != 1 {
		t.Errorf("got %+v, want 1 discarded", summary)
	}
	d.wantRow(t, id, "estado = 'descartado' and ultimo_error_categoria = 'credenciales' and ultimo_error_codigo = 'transporte_no_configurado'")
}

func TestRunOnceWithTheDatabaseAwayCountsAnError(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@/none?host="+t.TempDir()) // where no socket is
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	summary := database{pool}.runOnce(t, sent, relay.Options{})
	if want := (relay.Summary{Errors: 1}); !reflect.DeepEqual(withoutWarnings(summary), want) {
		t.Errorf("got %+v, want %+v", summary, want)
	}
}

func TestRunOnceGivesTheSQLSTATEOfTheLastError(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.add(t, nil)
	d.exec(t, "create function refuse() returns trigger language plpgsql as $$ begin raise 'no' using errcode = '53100'; end $$")
	d.exec(t, "create trigger refuse before update on outbox for each row when (new.estado = 'enviado') execute function refuse()") // as when the disk is full
	summary := d.runOnce(t, sent, relay.Options{})
	if want := (relay.Summary{Claimed: 1, Errors: 4, LastError: "53100"}); !reflect.DeepEqual(withoutWarnings(summary), want) {
		t.Errorf("got %+v, want %+v", summary, want)
	}
}

func TestRunOnceAndRunRefuseADatabaseWithoutTheTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	opts := relay.Options{Log: silent}
	senders := relay.Senders{"correo": transporte.Func(sent)}
	_, once := relay.RunOnce(t.Context(), pool, outbox.Table{}, senders, opts)
	run := relay.Run(t.Context(), pool, outbox.Table{}, senders, opts)
	for name, err := range map[string]error{"RunOnce": once, "Run": run} {
		if !errors.Is(err, outbox.ErrSchema) || !strings.Contains(err.Error(), "relay migrate") {
			t.Errorf("%s: got %v, want ErrSchema and the command to run", name, err)
		}
	}
}

func TestRunOnceAfterItsContextEndedClaimsNothing(t *testing.T) {
	t.Parallel()
	d := open(t)
	id := d.add(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	summary, err := relay.RunOnce(ctx, d.Pool, outbox.Table{}, relay.Senders{"correo": transporte.Func(sent)}, relay.Options{Log: silent})
	if err != nil || !reflect.DeepEqual(withoutWarnings(summary), relay.Summary{}) {
		t.Errorf("got %+v, %v, want nothing", summary, err)
	}
	d.wantRow(t, id, "estado = 'pendiente' and intentos = 0")
}

func withoutWarnings(s relay.Summary) relay.Summary {
	s.Warnings = nil
	return s
}

func TestHeadersThatAreNotAnObjectAreLeftOut(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, headers := range []string{"'[1]'", "'\"text\"'", "'null'", "null"} {
		d.add(t, fields{"cabeceras": headers})
	}
	d.runOnce(t, func(_ context.Context, m transporte.Message) (string, error) {
		if len(m.Headers) != 0 {
			t.Errorf("got %v, want none", maps.Collect(maps.All(m.Headers)))
		}
		return "", nil
	}, relay.Options{})
	d.wantCount(t, "estado = 'enviado'", 4)
}
