package relay_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

type who struct{}

// recorder notes each event with its name. SendStart puts the name into the context, SendEnd finds the last one there.
func recorder(name string, note func(string)) relay.Observer {
	return relay.Observer{
		Turn:  func(time.Duration) { note(name + " turn") },
		Wake:  func(notify.Cause) { note(name + " wake") },
		Claim: func(relay.Claim) { note(name + " claim") },
		SendStart: func(ctx context.Context, _ relay.Attempt) context.Context {
			note(name + " start")
			return context.WithValue(ctx, who{}, name)
		},
		SendEnd: func(ctx context.Context, _ relay.SendEnd) {
			note(name + " end in the context of " + ctx.Value(who{}).(string))
		},
		Recorded:      func(relay.Recorded) { note(name + " recorded") },
		Listening:     func(error) { note(name + " listening") },
		Watching:      func(bool) { note(name + " watching") },
		DatabaseError: func(error) { note(name + " error") },
	}
}

func TestJoinedObserversHearEverythingInTheirOrder(t *testing.T) {
	t.Parallel()
	var got []string
	note := func(s string) { got = append(got, s) }
	joined := relay.Join(relay.Observer{}, recorder("a", note), relay.Observer{}, recorder("b", note))
	// By reflection, so that an event that is added and not joined is found.
	fields := reflect.ValueOf(joined)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; fields.Field(i).IsNil() {
			t.Errorf("%s is not joined", name)
		}
	}
	joined.Turn(0)
	joined.Wake(notify.Poll)
	joined.Claim(relay.Claim{})
	joined.SendEnd(joined.SendStart(t.Context(), relay.Attempt{}), relay.SendEnd{})
	joined.Recorded(relay.Recorded{})
	joined.Listening(nil)
	joined.Watching(true)
	joined.DatabaseError(nil)
	want := []string{"a turn", "b turn", "a wake", "b wake", "a claim", "b claim", "a start", "b start", "a end in the context of b",
		"b end in the context of b", "a recorded", "b recorded", "a listening", "b listening", "a watching", "b watching", "a error", "b error"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWhatNoJoinedObserverHearsStaysNil(t *testing.T) {
	t.Parallel()
	fields := reflect.ValueOf(relay.Join(relay.Observer{}, relay.Observer{}))
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			t.Errorf("%s is set, want nil", fields.Type().Field(i).Name)
		}
	}
}

func TestTheSenderGetsTheContextOfSendStart(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.add(t, fields{"cabeceras": `'{"traceparent": "00-1-2-01", "n": 7}'`, "clave_idempotencia": "'alta-7'"})
	var inSender, inEnd any
	var attempt relay.Attempt
	d.runOnce(t, func(ctx context.Context, _ transporte.Message) (string, error) {
		inSender = ctx.Value(who{})
		return "", nil
	}, relay.Options{Observer: relay.Observer{
		SendStart: func(ctx context.Context, a relay.Attempt) context.Context {
			attempt = a
			return context.WithValue(ctx, who{}, "ana")
		},
		SendEnd: func(ctx context.Context, e relay.SendEnd) {
			inEnd = ctx.Value(who{})
			if e.Outcome != relay.Sent {
				t.Errorf("got the outcome %q, want sent", e.Outcome)
			}
		},
	}})
	if inSender != "ana" || inEnd != "ana" {
		t.Errorf("got %v in the sender and %v in SendEnd, want what SendStart put into the context", inSender, inEnd)
	}
	if attempt.Template != "aviso" || attempt.IdempotencyKey != "alta-7" {
		t.Errorf("got template %q and key %q, want aviso and alta-7", attempt.Template, attempt.IdempotencyKey)
	}
	if h := attempt.Headers(); len(h) != 2 || h["traceparent"] != "00-1-2-01" || h["n"] != "7" {
		t.Errorf("got the headers %v, want both", h)
	}
}

func TestALoopThatTurnsSaysWhenItTurnsAgain(t *testing.T) {
	t.Parallel()
	d := open(t)
	turns := make(chan time.Duration, 1000)
	d.start(t, sent, relay.Options{PollInterval: 200 * time.Millisecond, Observer: relay.Observer{Turn: func(within time.Duration) {
		select {
		case turns <- within:
		default:
		}
	}}})
	for range 5 {
		if within := receive(t, turns, "a turn of the loop"); within > 200*time.Millisecond {
			t.Errorf("got the next turn within %v, want at most the poll's 200ms", within)
		}
	}
}
