package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgxlisten"

	"github.com/mafesoftware/outbox-relay/internal/retry"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// Listener keeps a session that LISTENs on Channel and rings Bell for what arrives. Fields are set before Run.
type Listener struct {
	Bell    *Bell
	Channel string
	// Connect dials a new session on each call, straight to the server and not through a pooler in transaction mode.
	Connect func(context.Context) (*pgx.Conn, error)
	// Notify sends a payload on Channel over another session. What it sends must arrive, or the session is dead.
	Notify func(ctx context.Context, payload string) error
	// ProbeInterval is the time between two proofs that notifications arrive, ProbeTimeout how long one may take.
	ProbeInterval, ProbeTimeout time.Duration
	// Changed hears that the session is proven (nil) or lost (why). It must return soon.
	Changed func(err error)
	// Pauses gets an element when the pauses may have changed: when that is announced, and after each LISTEN. It has room
	// for one. Nil: nobody asks.
	Pauses chan<- struct{}
	Log    *slog.Logger
	// Self marks what this relay says, Scope what it looks for: relays of another scope do not cover it. Without spaces.
	Self, Scope string

	lastPeer atomic.Int64 // when another relay was last heard, in ns since 1970
	failures atomic.Int32 // attempts to connect since notifications last arrived

	mu    sync.Mutex
	state state
}

type state int

const (
	untried state = iota
	up            // notifications arrive
	down
	deaf // LISTEN is accepted, and nothing ever arrives
)

// Up tells whether notifications are known to arrive.
func (l *Listener) Up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == up
}

var (
	errSilent = errors.New("notifications do not arrive")
	errDeaf   = errors.New("notifications never arrived, as through a pooler in transaction mode: give the relay a direct connection to listen on (ListenDSN)")
)

// Run listens until ctx ends, through any outage, and returns nil. pgxlisten reads the session; since it cannot see that
// a session is dead, a watchdog proves it from the first moment on, and ends it otherwise.
func (l *Listener) Run(ctx context.Context) error {
	for {
		err := l.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		l.enter(down, err)
	}
}

// session is one run of pgxlisten. It dials again by itself after an error; the watchdog ends it when it has gone silent.
func (l *Listener) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h := &handler{l: l, echo: make(chan struct{}, 1), listening: make(chan struct{}, 1)}
	listener := pgxlisten.Listener{
		Connect: l.connect,
		LogError: func(ctx context.Context, err error) {
			h.connected.Store(false)
			if ctx.Err() == nil { // otherwise it was ended, and not lost
				l.enter(down, err)
			}
		},
		ReconnectDelay: time.Millisecond, // connect waits, longer and longer, which pgxlisten cannot
	}
	listener.Handle(l.Channel, h)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.watch(ctx, h, cancel)
	}()
	_ = listener.Listen(ctx) // returns when ctx ends
	<-done
	return context.Cause(ctx)
}

// enter notes a change and reports it once.
func (l *Listener) enter(to state, err error) {
	if errors.Is(err, errDeaf) {
		to = deaf
	}
	l.mu.Lock()
	was := l.state
	if was == deaf && to == down {
		to = deaf // the cause is known: do not report each new attempt
	}
	l.state = to
	l.mu.Unlock()
	if was == to {
		return
	}
	if to == up {
		l.Log.Info("listening", "notifications", l.Channel)
	} else {
		l.Log.Warn("not listening, polling until notifications arrive again", "err", retry.Reason(err))
	}
	l.Changed(err)
}

func (l *Listener) connect(ctx context.Context) (*pgx.Conn, error) {
	if n := l.failures.Add(1) - 1; n > 0 {
		if err := retry.Sleep(ctx, retry.Delay(int(n))); err != nil {
			return nil, err
		}
	}
	dialing, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := l.Connect(dialing)
	if err != nil {
		return nil, err
	}
	if err := prepareSession(dialing, conn, ListenSession); err != nil {
		return nil, err
	}
	// pgxlisten waits for the answer to LISTEN without a limit. HandleBacklog takes this one off again.
	if err := conn.PgConn().Conn().SetDeadline(time.Now().Add(l.ProbeTimeout)); err != nil {
		_ = conn.Close(dialing)
		return nil, err
	}
	return conn, nil
}

// watch sends a private payload around at once after each LISTEN and then every ProbeInterval. One that does not come
// back in time ends the session with a cause.
func (l *Listener) watch(ctx context.Context, h *handler, end context.CancelCauseFunc) {
	heard := false
	timer := time.NewTimer(l.ProbeInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.listening:
		case <-timer.C:
		}
		timer.Reset(l.ProbeInterval/2 + rand.N(l.ProbeInterval/2+1))
		if !h.connected.Load() {
			continue // it is dialling; a probe would end that attempt
		}
		switch err := l.probe(ctx, h); {
		case err == nil:
			heard = true
			l.failures.Store(0)
			l.enter(up, nil)
		case !errors.Is(err, errSilent) || !h.connected.Load() || len(h.listening) > 0:
			// The probe could not be sent, or the session ended meanwhile: nothing is known, so ask again soon.
			timer.Reset(min(l.ProbeInterval, time.Second))
		case heard:
			end(errSilent)
			return
		default:
			end(errDeaf)
			return
		}
	}
}

// probe returns nil when its payload came back, errSilent when it was sent and did not, and another error when it could
// not be sent.
func (l *Listener) probe(ctx context.Context, h *handler) error {
	payload := probePrefix + l.Self + " " + uuid.NewString()
	select {
	case <-h.echo: // of a probe that was given up
	default:
	}
	h.expected.Store(&payload)
	sending, cancel := context.WithTimeout(ctx, l.ProbeTimeout)
	defer cancel()
	if err := l.Notify(sending, payload); err != nil {
		return fmt.Errorf("send a probe: %w", err)
	}
	late := time.NewTimer(l.ProbeTimeout) // counts from here: a busy pool says nothing about the session
	defer late.Stop()
	for arrived, n := h.arrived.Load(), 1; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.echo:
			return nil
		case <-late.C:
		}
		before := arrived
		if arrived = h.arrived.Load(); arrived == before || n == floodWaits {
			return errSilent
		}
		late.Reset(l.ProbeTimeout)
	}
}

// floodWaits is how often ProbeTimeout may pass while other notifications arrive: the probe may stand in line behind
// thousands of them. Not without end, since they may come from another server than the one that the probe went to.
const floodWaits = 5

// What relays say to each other on the channel, besides what the insert trigger says.
const (
	probePrefix = "probe " // and who, and which: it must come back to the sender; to others it shows that there is a peer
	seenPrefix  = "seen "  // see Seen
	help        = "help"   // there is more than the sender can carry: look now
)

// Peers tells whether another relay has shown itself lately.
func (l *Listener) Peers() bool {
	return time.Since(time.Unix(0, l.lastPeer.Load())) < peerMemory
}

// peerMemory is longer than any two probes of a relay with sane options lie apart.
const peerMemory = time.Minute

// Seen tells the other relays that a claim, made at the server's time now with this snapshot, has left nothing. They need
// not look for the transactions in it, or for rows that were due by then.
func (l *Listener) Seen(ctx context.Context, now time.Time, snapshot string) error {
	payload := fmt.Sprintf("%s%s %s %d %s", seenPrefix, l.Self, l.Scope, now.UnixMicro(), snapshot)
	if len(payload) > maxPayload {
		return nil // thousands of open transactions: the others look for themselves
	}
	return l.Notify(ctx, payload)
}

// maxPayload is Postgres's bound in bytes (PostgreSQL manual, NOTIFY).
const maxPayload = 7999

func (h *handler) seen(payload string) {
	var who, scope, snapshot string
	var now int64
	_, err := fmt.Sscanf(payload[len(seenPrefix):], "%s %s %d %s", &who, &scope, &now, &snapshot)
	if err == nil && who != h.l.Self && scope == h.l.Scope {
		h.l.Bell.cover(time.UnixMicro(now), parseSnapshot(snapshot))
	}
}

// handler blocks only while the session is lent, which is bounded: a handler that blocks for longer fills the server's
// notification queue, and then commits of the business fail.
type handler struct {
	l         *Listener
	loans     atomic.Int32
	connected atomic.Bool
	listening chan struct{}
	expected  atomic.Pointer[string] // payload of the probe under way; other relays probe on the same channel
	echo      chan struct{}
	arrived   atomic.Int64 // notifications of any kind
}

// HandleBacklog runs after LISTEN is confirmed: what was committed before is found by the look that this rings for.
func (h *handler) HandleBacklog(_ context.Context, _ string, conn *pgx.Conn) error {
	if err := conn.PgConn().Conn().SetDeadline(time.Time{}); err != nil {
		return err
	}
	h.loans.Store(unproven)
	h.connected.Store(true)
	signal(h.listening)
	signal(h.l.Pauses)
	h.l.Bell.forget()
	h.l.Bell.Ring(Listen)
	return nil
}

func (h *handler) HandleNotification(_ context.Context, n *pgconn.Notification, conn *pgx.Conn) error {
	h.arrived.Add(1)
	switch {
	case strings.HasPrefix(n.Payload, probePrefix):
		if expected := h.expected.Load(); expected != nil && *expected == n.Payload {
			h.loans.CompareAndSwap(unproven, proven)
			signal(h.echo)
		}
		if !strings.HasPrefix(n.Payload, probePrefix+h.l.Self) {
			h.l.lastPeer.Store(time.Now().UnixNano())
		}
	case strings.HasPrefix(n.Payload, seenPrefix):
		h.seen(n.Payload)
	case n.Payload == outbox.PausesChanged:
		signal(h.l.Pauses)
	case n.Payload == help:
		h.l.Bell.Ring(Help)
	default:
		if h.l.Bell.announced(n.Payload) {
			h.wake(conn)
		}
	}
	return nil
}
