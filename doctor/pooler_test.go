package doctor_test

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pooler gives all its clients one session of the server, a transaction at a time, as PgBouncer in transaction mode does
// with few connections. It keeps no track of prepared statements.
type pooler struct {
	listener net.Listener
	pids     atomic.Uint32

	mu     sync.Mutex // held by the client that is in a transaction
	server *pgconn.HijackedConn
}

func newPooler(t *testing.T, dsn string) *pooler {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	server, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{listener: listener, server: server}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer client.Close()
				_ = p.serve(client) // ends with the client
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		server.Conn.Close()
		serving.Wait()
	})
	return p
}

// dial makes a pool's connections go through the pooler.
func (p *pooler) dial(c *pgxpool.Config) {
	c.ConnConfig.Host, c.ConnConfig.Port = "127.0.0.1", uint16(p.listener.Addr().(*net.TCPAddr).Port)
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
}

func (p *pooler) serve(client net.Conn) error {
	backend := pgproto3.NewBackend(client, client)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return err
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	for name, value := range p.server.ParameterStatuses {
		backend.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	backend.Send(&pgproto3.BackendKeyData{ProcessID: p.pids.Add(1), SecretKey: []byte{0, 0, 0, 0}})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := backend.Flush(); err != nil {
		return err
	}
	for {
		first, err := backend.Receive()
		if err != nil {
			return err
		}
		if err := p.transaction(backend, first); err != nil {
			return err
		}
	}
}

var errLeft = errors.New("the client has left")

// transaction passes messages both ways until the server is out of a transaction.
func (p *pooler) transaction(client *pgproto3.Backend, m pgproto3.FrontendMessage) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if _, leaves := m.(*pgproto3.Terminate); leaves {
			return errLeft
		}
		p.server.Frontend.Send(m)
		if err := p.server.Frontend.Flush(); err != nil {
			return err
		}
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			status, err := p.answers(client)
			if err != nil || status == 'I' {
				return err
			}
		}
		if m, err = client.Receive(); err != nil {
			return err
		}
	}
}

// answers passes on what the server says until it is ready again. Notifications go to whoever has the session just now.
func (p *pooler) answers(client *pgproto3.Backend) (status byte, err error) {
	for {
		m, err := p.server.Frontend.Receive()
		if err != nil {
			return 0, err
		}
		client.Send(m)
		if ready, ok := m.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, client.Flush()
		}
	}
}
