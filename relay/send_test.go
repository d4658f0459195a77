package relay_test

import (
	"context"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestASenderThatPanicsFailsOneAttempt(t *testing.T) {
	t.Parallel()
	d := open(t)
	panics := map[string]func() error{
		"a text":                func() error { panic("ana@example.com") },
		"an error":              func() error { panic(&url.Error{}) },
		"nil":                   func() error { panic(nil) },
		"a runtime error":       func() error { var none []error; return none[len(none)] },
		"a method of the error": func() error { return (*url.Error)(nil) }, // errors.As calls Unwrap, which reads a field
	}
	for name := range panics {
		d.add(t, fields{"plantilla": "'" + name + "'"})
	}
	good := d.add(t, fields{"plantilla": "'good'"})
	summary := d.runOnce(t, func(_ context.Context, m transporte.Message) (string, error) {
		if m.Template == "good" {
			return "", nil
		}
		return "", panics[m.Template]()
	}, relay.Options{})
	if summary.Retried != len(panics) || summary.Sent != 1 {
		t.Errorf("got %+v, want %d retried and 1 sent", summary, len(panics))
	}
	d.wantCount(t, `estado = 'pendiente' and intentos = 1 and proximo_intento_en > now() and ultimo_error_categoria = 'red'
		and ultimo_error_codigo = 'transporte_panico'`, len(panics))
	d.wantRow(t, good, "estado = 'enviado'")
}

func TestASenderThatReturnsATypedNilErrorIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := open(t)
	id := d.add(t, nil)
	d.runOnce(t, func(context.Context, transporte.Message) (string, error) {
		var failed *transporte.Error
		return "ext", failed
	}, relay.Options{})
	d.wantRow(t, id, "estado = 'pendiente' and intentos = 1 and ultimo_error_categoria = 'red' and ultimo_error_codigo = 'transporte_excepcion'")
}

func TestASenderThatHangsIsCutAtItsTimeoutAndOneThatIgnoresThatIsLeftBehind(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, template := range []string{"hangs", "ignores", "exits", "succeeds late", "good"} {
		d.add(t, fields{"plantilla": "'" + template + "'"})
	}
	never, returned := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	ends := make(map[string]relay.SendEnd)
	send := func(ctx context.Context, m transporte.Message) (string, error) {
		switch m.Template {
		case "hangs":
			<-ctx.Done()
			return "", ctx.Err()
		case "ignores":
			defer close(returned)
			<-never
			return "too late", nil
		case "exits":
			runtime.Goexit()
		case "succeeds late":
			<-ctx.Done()
			return "arrived", nil
		}
		return "", nil
	}
	begun := time.Now()
	summary := d.runOnce(t, send, relay.Options{Timeout: time.Second, Observer: relay.Observer{SendEnd: func(_ context.Context, e relay.SendEnd) {
		mu.Lock()
		defer mu.Unlock()
		ends[e.ID] = e
	}}})
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("RunOnce took %v, want the timeout of 1 s and a grace of 1 s", took)
	}
	if summary.Sent != 2 || summary.Retried != 3 {
		t.Errorf("got %+v, want 2 sent and 3 retried", summary)
	}
	d.wantCount(t, "plantilla = 'good' and estado = 'enviado'", 1)
	d.wantCount(t, "plantilla = 'succeeds late' and estado = 'enviado' and id_externo = 'arrived'", 1)
	timedOut := `estado = 'pendiente' and intentos = 1 and ultimo_error_categoria = 'red' and ultimo_error_codigo = 'timeout' and plantilla = `
	for template, abandoned := range map[string]bool{"hangs": false, "ignores": true, "exits": true} {
		d.wantCount(t, timedOut+"'"+template+"'", 1)
		var id string
		if err := d.QueryRow(t.Context(), "select id::text from outbox where plantilla = $1", template).Scan(&id); err != nil {
			t.Fatal(err)
		}
		if e := ends[id]; e.Abandoned != abandoned || !e.Uncertain || e.Took < time.Second {
			t.Errorf("%s: got %+v, want abandoned %t, uncertain, after the timeout", template, e, abandoned)
		}
	}
	close(never)
	receive(t, returned, "the return of the sender that was left behind")
	d.wantCount(t, "id_externo = 'too late'", 0)
}

func TestAnAbandonedSenderStopsNeitherTheRelayNorItsEnd(t *testing.T) {
	t.Parallel()
	d := open(t)
	never := make(chan struct{})
	defer close(never)
	stuck := make(chan struct{})
	var received receiver
	stop := d.start(t, func(ctx context.Context, m transporte.Message) (string, error) {
		if m.Template == "ignores" {
			close(stuck)
			<-never
		}
		return received.Send(ctx, m)
	}, relay.Options{Concurrency: 1, Timeout: time.Second})
	d.add(t, fields{"plantilla": "'ignores'"})
	receive(t, stuck, "the first send")
	d.addMany(t, 5)
	waitfor.True(t, "the others are sent", func() bool { return received.arrived() == 5 })
	stop()
	d.wantCount(t, "estado = 'enviado'", 5)
	d.wantCount(t, "plantilla = 'ignores' and ultimo_error_codigo = 'timeout'", 1)
}
