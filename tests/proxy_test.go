package tests

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// proxy is a TCP link to a server that a test can hurt.
type proxy struct {
	listener net.Listener
	attempts atomic.Int32 // connections that clients asked for

	mu              sync.Mutex
	network, target string
	mode            mode
	links           []*link
	trap            []byte
	spring          func(*link) // what happens to the link on which the trap's text passes
}

type mode int

const (
	forwarding mode = iota
	silent          // accepts, and nothing passes
	refusing        // accepts and ends at once
)

// link is one client's connection and the server's. A silent direction reads and drops; the other side hears nothing of
// it, not even that the connection has ended: as after a failover, a NAT that forgot, a cable that was pulled.
type link struct {
	client, server     net.Conn // server may be nil
	questions, answers atomic.Bool
}

// newProxy forwards to the server of dsn.
func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener}
	p.retarget(t, dsn)
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(&serving) })
	t.Cleanup(func() {
		p.set(refusing)
		listener.Close()
		p.cut()
		serving.Wait()
	})
	return p
}

func (p *proxy) serve(serving *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.attempts.Add(1)
		l := p.link(client)
		if l == nil {
			client.Close()
			continue
		}
		trapped := func(text []byte) { p.trapped(l, text) }
		serving.Go(func() { l.pass(l.server, client, &l.questions, trapped) })
		if l.server != nil {
			serving.Go(func() { l.pass(client, l.server, &l.answers, trapped) })
		}
	}
}

// link gives nil when the client is to be refused.
func (p *proxy) link(client net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{client: client}
	switch p.mode {
	case refusing:
		return nil
	case silent:
		l.questions.Store(true)
	case forwarding:
		var err error
		if l.server, err = net.Dial(p.network, p.target); err != nil {
			return nil // as the server itself would
		}
	}
	p.links = append(p.links, l)
	return l
}

// pass shows trapped what it is about to pass.
func (l *link) pass(to, from net.Conn, silent *atomic.Bool, trapped func([]byte)) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		trapped(buffer[:n])
		if !silent.Load() {
			if n > 0 {
				_, _ = to.Write(buffer[:n])
			}
			if err != nil {
				to.Close()
			}
		}
		if err != nil {
			return
		}
	}
}

// retarget sends new connections to another server.
func (p *proxy) retarget(t *testing.T, dsn string) {
	t.Helper()
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.network, p.target = pgconn.NetworkAddress(config.Host, config.Port)
}

// set decides about new connections.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
}

// forget makes the present connections silent for ever.
func (p *proxy) forget() {
	p.each(func(l *link) {
		l.questions.Store(true)
		l.answers.Store(true)
	})
}

// blackhole lets nothing pass, on the present connections and on new ones.
func (p *proxy) blackhole() {
	p.set(silent)
	p.forget()
}

// loseAnswer drops the next answer with this text, and what the server says on that connection from then on.
func (p *proxy) loseAnswer(text string) {
	p.catch(text, func(l *link) { l.answers.Store(true) })
}

// silenceOn makes silent the one connection on which a question with this text comes next, and drops the question.
func (p *proxy) silenceOn(text string) {
	p.catch(text, func(l *link) { l.questions.Store(true) })
}

func (p *proxy) catch(text string, spring func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap, p.spring = []byte(text), spring
}

func (p *proxy) trapped(l *link, text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap != nil && bytes.Contains(text, p.trap) {
		p.spring(l)
		p.trap = nil
	}
}

// cut ends the present connections on both sides.
func (p *proxy) cut() {
	p.each(func(l *link) {
		l.client.Close()
		if l.server != nil {
			l.server.Close()
		}
	})
}

func (p *proxy) each(do func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		do(l)
	}
}

// dial makes a pool's connections, and those of the relay's listener when it has no DSN of its own, go through the proxy.
func (p *proxy) dial(config *pgxpool.Config) {
	config.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", p.listener.Addr().String())
	}
}

// dsn is the connection string of the same database through the proxy.
func (p *proxy) dsn(t *testing.T, of string) string {
	t.Helper()
	config, err := pgx.ParseConfig(of)
	if err != nil {
		t.Fatal(err)
	}
	ssl := "disable"
	if config.TLSConfig != nil {
		ssl = "require"
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "/" + config.Database,
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.listener.Addr().(*net.TCPAddr).Port)), RawQuery: "sslmode=" + ssl}
	return u.String()
}
