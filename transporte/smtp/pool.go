package smtp

import (
	"context"
	"sync"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// pool keeps connections between messages, and bounds how many are in use.
type pool struct {
	turns       chan struct{} // one for each message on its way
	idleTimeout time.Duration
	quits       sync.WaitGroup

	mu     sync.Mutex
	closed bool
	idle   []idle // last used last; with those in use never more than turns
}

// idle is a connection that waits for a message.
type idle struct {
	session *session
	expiry  *time.Timer
}

func newPool(connections int, idleTimeout time.Duration) *pool {
	return &pool{turns: make(chan struct{}, connections), idleTimeout: idleTimeout}
}

// enter waits for a turn, for half of the time at most: an email that begins later might be cut when it has left already, and
// arrive twice.
func (p *pool) enter(ctx context.Context) error {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(end)/2)
	defer cancel()
	if ctx.Err() == nil { // select would choose by chance
		select {
		case p.turns <- struct{}{}:
			return nil
		case <-ctx.Done():
		}
	}
	return &transporte.Error{Category: outbox.Network, Code: "sin_turno"}
}

func (p *pool) leave() { <-p.turns }

// take returns the connection used last, so that those that are too many grow old; nil if there is none.
func (p *pool) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	last.expiry.Stop() // one that fires all the same finds its connection gone
	return last.session
}

// put keeps s for the next message.
func (p *pool) put(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.hangUp()
		return
	}
	p.idle = append(p.idle, idle{s, time.AfterFunc(p.idleTimeout, func() { p.expire(s) })})
}

func (p *pool) expire(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.idle {
		if p.idle[i].session == s {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			p.quitLocked(s)
			return
		}
	}
}

// retire ends a connection that carried enough messages. The message before does not wait for it.
func (p *pool) retire(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.hangUp()
		return
	}
	p.quitLocked(s)
}

// quitLocked needs mu: after closed nothing may be added to quits.
func (p *pool) quitLocked(s *session) { p.quits.Go(s.quit) }

func (p *pool) close() {
	p.mu.Lock()
	for _, one := range p.idle {
		one.expiry.Stop()
		p.quitLocked(one.session)
	}
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	p.quits.Wait()
}
