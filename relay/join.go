package relay

import (
	"context"
	"time"

	"github.com/mafesoftware/outbox-relay/notify"
)

// Join makes one observer of several, which hear everything in this order. What none of them hears costs nothing.
func Join(all ...Observer) Observer {
	joined := Observer{
		Turn:          each(all, func(o Observer) func(time.Duration) { return o.Turn }),
		Wake:          each(all, func(o Observer) func(notify.Cause) { return o.Wake }),
		Claim:         each(all, func(o Observer) func(Claim) { return o.Claim }),
		Recorded:      each(all, func(o Observer) func(Recorded) { return o.Recorded }),
		Listening:     each(all, func(o Observer) func(error) { return o.Listening }),
		Watching:      each(all, func(o Observer) func(bool) { return o.Watching }),
		DatabaseError: each(all, func(o Observer) func(error) { return o.DatabaseError }),
	}
	for _, o := range all {
		joined.SendStart = thenStart(joined.SendStart, o.SendStart)
		joined.SendEnd = thenEnd(joined.SendEnd, o.SendEnd)
	}
	return joined
}

// each calls what the observers have for one event, nil if none has anything.
func each[T any](all []Observer, of func(Observer) func(T)) func(T) {
	var hear []func(T)
	for _, o := range all {
		if f := of(o); f != nil {
			hear = append(hear, f)
		}
	}
	switch len(hear) {
	case 0:
		return nil
	case 1:
		return hear[0]
	}
	return func(event T) {
		for _, f := range hear {
			f(event)
		}
	}
}

func thenStart(a, b func(context.Context, Attempt) context.Context) func(context.Context, Attempt) context.Context {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, attempt Attempt) context.Context { return b(a(ctx, attempt), attempt) }
}

func thenEnd(a, b func(context.Context, SendEnd)) func(context.Context, SendEnd) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, end SendEnd) { a(ctx, end); b(ctx, end) }
}
