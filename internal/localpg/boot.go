package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

var errEnded = errors.New("postgres ended while it started")

// firstBoot looks for a port as long as somebody else is quicker.
func (c *cluster) firstBoot(ctx context.Context) error {
	if !c.tcp {
		return c.boot(ctx)
	}
	err := errEnded
	for tries := 0; tries < 5 && errors.Is(err, errEnded); tries++ {
		if c.port, err = freePort(); err != nil {
			return err
		}
		err = c.boot(ctx)
	}
	return err
}

// freePort stays below the ports that systems give to outgoing connections: one of those would otherwise take the port
// of a server that is down for a moment.
func freePort() (int, error) {
	for range 1000 {
		port := 20000 + rand.IntN(10000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port between 20000 and 30000 on 127.0.0.1")
}

// boot runs postgres itself, not pg_ctl, so that the server is a child that can be waited for.
func (c *cluster) boot(ctx context.Context) error {
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	host := ""
	if c.tcp {
		host = "127.0.0.1"
	}
	cmd := exec.Command(filepath.Join(c.bin, "postgres"),
		"-D", c.data(), "-k", c.socket, "-h", host, "-p", strconv.Itoa(c.port))
	cmd.Dir = c.folder
	cmd.Env = slices.Concat(os.Environ(), []string{"LC_ALL=C", "TZ=UTC"}, c.env)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = c.account.attributes()
	server, err := startProcess(cmd)
	if err != nil {
		return err
	}
	if err := c.await(ctx, server); err != nil {
		return errors.Join(err, server.kill())
	}
	c.server = server
	return nil
}

// await asks over the Unix socket, because on the port another server might answer.
func (c *cluster) await(ctx context.Context, server *process) error {
	const limit = time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := ask(ctx, c.socketDSN())
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-server.ended:
			return fmt.Errorf("%w (%v): %s", errEnded, server.err, c.endOfLog())
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w: %s", errors.Join(ctx.Err(), err), c.endOfLog())
		}
	}
}

func (c *cluster) dsn() string {
	if c.tcp {
		return "postgres://postgres@" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) + "/postgres?sslmode=disable"
	}
	return c.socketDSN()
}

func (c *cluster) socketDSN() string {
	query := url.Values{"host": {c.socket}, "port": {strconv.Itoa(c.port)}, "sslmode": {"disable"}}
	return "postgres://postgres@/postgres?" + query.Encode()
}

func (c *cluster) endOfLog() []byte {
	text, _ := os.ReadFile(c.log())
	return end(text)
}

func end(text []byte) []byte { return bytes.TrimSpace(text[max(0, len(text)-1000):]) }
