// Package health tells over HTTP whether the relays of a process are well.
//
// /healthz says that the process lives. /readyz says that each relay can send: its loop goes round, the database answers,
// notifications arrive. It forgives an outage that is shorter than Tolerance, such as a failover, since a relay heals by
// itself; a table that is missing it does not forgive, nor a process that is asked to stop.
package health

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
)

// Options of the health. The zero value works.
type Options struct {
	// Tolerance is how long the database or its notifications may be away, or a loop late, before a relay is not ready.
	// Zero means 30 s.
	Tolerance time.Duration
	// PollOnly has relays ready that poll because notifications do not arrive, as through a pooler in transaction mode.
	PollOnly bool
}

func (o Options) tolerance() time.Duration { return cmp.Or(o.Tolerance, 30*time.Second) }

// Health follows the relays of a process. It is safe for concurrent use.
type Health struct {
	opts Options

	mu       sync.Mutex
	relays   []*pulse
	stopping bool
}

// New returns the health of a process without relays.
func New(opts Options) *Health { return &Health{opts: opts} }

// Observer adds a relay and is what it reports to. Name stands in the answers of /readyz.
func (h *Health) Observer(name string) relay.Observer {
	p := &pulse{name: name, deafSince: time.Now(), turnBy: time.Now()}
	h.mu.Lock()
	h.relays = append(h.relays, p)
	h.mu.Unlock()
	return relay.Observer{Turn: p.turned, Claim: p.claimed, Recorded: p.recorded, Listening: p.listening, DatabaseError: p.failed}
}

// Stop says that the process is asked to stop. It is not ready any more.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
}

// Ready tells whether every relay can send, with a line for each.
func (h *Health) Ready() (ready bool, report string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines strings.Builder
	ready = !h.stopping
	if h.stopping {
		lines.WriteString("stopping\n")
	}
	for _, p := range h.relays {
		wrong := p.wrong(h.opts)
		ready = ready && wrong == ""
		fmt.Fprintf(&lines, "outbox %s: %s\n", p.name, cmp.Or(wrong, "ready"))
	}
	return ready, lines.String()
}

// pulse is what was last heard of one relay.
type pulse struct {
	name string

	mu      sync.Mutex
	claims  bool // one has worked
	noTable bool // the last one failed because of the table
	// failing and failedLast are the first and the last failure of the database since it last worked, zero if there is none.
	// It is away for as long as failures go on: a single one that nothing followed says little.
	failing, failedLast time.Time
	why                 string
	heard               bool      // notifications have arrived
	deafSince           time.Time // zero while they do
	turnBy              time.Time // when the loop goes round next, at the latest
}

func (p *pulse) turned(within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turnBy = time.Now().Add(within)
}

func (p *pulse) claimed(c relay.Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noTable = missing(c.Err)
	if c.Err == nil {
		p.claims = true
		p.worksLocked()
	}
}

func (p *pulse) recorded(r relay.Recorded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Outcome != relay.Errored {
		p.worksLocked()
	}
}

func (p *pulse) worksLocked() { p.failing, p.failedLast, p.why = time.Time{}, time.Time{}, "" }

func (p *pulse) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failedLast = time.Now()
	if p.failing.IsZero() {
		p.failing = p.failedLast
	}
	// No more than the SQLSTATE: an error's text may quote data, or say where the database is.
	p.why = "no answer"
	if state := outbox.SQLState(err); state != "" {
		p.why = "SQLSTATE " + state
	}
}

func (p *pulse) listening(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.heard, p.deafSince = true, time.Time{}
	case p.deafSince.IsZero():
		p.deafSince = time.Now()
	}
}

// missing tells that a table, a column or the right to it is not there.
func missing(err error) bool {
	state := outbox.SQLState(err)
	return strings.HasPrefix(state, "42") || strings.HasPrefix(state, "3F")
}

// wrong says why the relay is not ready, and what to do, or nothing.
func (p *pulse) wrong(opts Options) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	away, deaf, late := p.failedLast.Sub(p.failing), now.Sub(p.deafSince), now.Sub(p.turnBy)
	switch {
	case p.noTable:
		return "the table cannot be used (" + p.why + "): run relay migrate, or relay doctor"
	case !p.claims && p.why != "":
		return "starting, the database fails (" + p.why + "): run relay doctor if that stays"
	case !p.claims:
		return "starting"
	case away > opts.tolerance():
		return fmt.Sprintf("the database has been failing for %v (%s): run relay doctor", now.Sub(p.failing).Round(time.Second), p.why)
	case late > opts.tolerance():
		return fmt.Sprintf("the loop is %v late: restart the relay, and report this with /debug/pprof/goroutine", late.Round(time.Second))
	case p.deafSince.IsZero() || opts.PollOnly:
		return ""
	case !p.heard || deaf > opts.tolerance():
		return fmt.Sprintf("no notifications for %v, it polls: run relay doctor, which tests LISTEN", deaf.Round(time.Second))
	}
	return ""
}
