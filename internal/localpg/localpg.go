// Package localpg gives a throw-away Postgres to the demo, the tests and the benchmark.
//
// Start uses the server of DATABASE_URL, or runs one of its own from installed binaries: in a fresh folder, under an
// ordinary account when the caller is root, on a Unix socket (and on 127.0.0.1 when asked). Such a server can be shut
// down, killed and started again on the same data and address, for tests of outages.
//
//	server, err := localpg.Start(ctx, localpg.Options{})
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	pool, err := pgxpool.New(ctx, server.DSN())
//
// Nothing is left behind: Stop ends the server and removes its folder, and when this process ends without a Stop (a
// panic, a test's timeout, SIGKILL), a shell that waits for that does both.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options say how Start runs a server of its own. Only Private has a meaning when DATABASE_URL is set.
type Options struct {
	// Private starts a server of its own even when DATABASE_URL is set: for callers that stop it, or measure it.
	Private bool

	// Durable keeps fsync and full_page_writes on and the data off /dev/shm. Without it, a crash of the machine
	// loses the data; a crash of the server loses no commit.
	Durable bool

	// TCP listens on a free port of 127.0.0.1 too, and makes DSN name it.
	TCP bool

	// Settings go into postgresql.conf: the parameter and its value, unquoted.
	Settings map[string]string

	// Env is added to the environment of the server, as "NAME=value" (LD_PRELOAD, for instance).
	Env []string

	// Dir is where the server's folder is made; the account that runs the server must be able to reach it. Empty means
	// /dev/shm when it has 1 GiB free and Durable is off, else os.TempDir.
	Dir string
}

// Server is a Postgres that takes connections. It is safe for concurrent use.
type Server struct {
	dsn     string
	version int      // server_version_num
	own     *cluster // nil for a server that was running before
}

// Start gives a running server: the one of DATABASE_URL, else one of its own from the binaries in OUTBOX_PG_BIN, PATH or
// the usual places. The caller stops it. The error wraps ErrNone when there is no Postgres; a DATABASE_URL that does not
// answer is an error too, never passed over.
func Start(ctx context.Context, opts Options) (*Server, error) {
	return start(ctx, opts, systemFinder())
}

func start(ctx context.Context, opts Options, f finder) (*Server, error) {
	if dsn := f.getenv("DATABASE_URL"); dsn != "" && !opts.Private {
		s, err := Open(ctx, dsn)
		if err != nil {
			return nil, fmt.Errorf("DATABASE_URL is set, but its server cannot be used: %w", err)
		}
		return s, nil
	}
	bin, err := f.find()
	if err != nil {
		return nil, err
	}
	c, err := newCluster(ctx, bin, opts)
	if err != nil {
		return nil, fmt.Errorf("start Postgres from %s: %w", bin, err)
	}
	s, err := Open(ctx, c.dsn())
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	s.own = c
	return s, nil
}

// Open uses a server that runs already. Stop, Kill and the like leave it alone.
func Open(ctx context.Context, dsn string) (*Server, error) {
	version, err := ask(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &Server{dsn: dsn, version: version}, nil
}

// ask returns server_version_num.
func ask(ctx context.Context, dsn string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	var version int
	err = conn.QueryRow(ctx, "select current_setting('server_version_num')::integer").Scan(&version)
	return version, err
}

// DSN is a URL of the server's maintenance database (or DATABASE_URL as it stands), with the right to create databases.
func (s *Server) DSN() string { return s.dsn }

// Stop ends the server at once and removes its folder. It does nothing when the server ran before, or when it is called
// again.
func (s *Server) Stop() error {
	if s.own == nil {
		return nil
	}
	return s.own.remove()
}

// errNotOurs is returned for a server that Start or Open found running.
var errNotOurs = errors.New("the server was not started here, so it is not stopped or restarted here: set Options.Private")

// Shutdown ends sessions, writes a checkpoint and ends the server (a "fast" shutdown). Restart starts it again. Like
// Kill, it does nothing to a server that is down.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.own == nil {
		return errNotOurs
	}
	return s.own.shutdown(ctx)
}

// Kill ends the server as a crash would (an "immediate" shutdown): no checkpoint, and recovery at the next start.
func (s *Server) Kill() error {
	if s.own == nil {
		return errNotOurs
	}
	return s.own.kill()
}

// Restart starts the server again on the same data and the same address, after a Shutdown if it is up.
func (s *Server) Restart(ctx context.Context) error {
	if s.own == nil {
		return errNotOurs
	}
	return s.own.restart(ctx)
}
