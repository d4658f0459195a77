package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
)

// poolSize is the number of connections of each contender's pool: more than any of them uses at once.
const poolSize = 20

// settings of the server. No checkpoint falls into a measurement (each suite makes one before), and the data of all suites
// but growth fits into memory. Everything else is Postgres' default; fsync, full_page_writes and synchronous_commit are on.
var settings = map[string]string{
	"shared_buffers":     "1GB",
	"max_connections":    "300",
	"max_wal_size":       "16GB",
	"min_wal_size":       "2GB",
	"checkpoint_timeout": "30min",
}

// slowdown is what one fdatasync takes longer on the slow disk.
const slowdown = time.Millisecond

//go:embed slowsync/slowsync.c
var slowsyncSource []byte

// server is a Postgres of this run.
type server struct {
	*localpg.Server
	disk   string
	folder string // of the library that slows the disk
}

// plainDisk gives the server on the disk as it is.
func (b *bench) plainDisk(ctx context.Context) (*server, error) {
	if b.plain != nil {
		return b.plain, nil
	}
	s, err := localpg.Start(ctx, localpg.Options{Private: true, Durable: true, Dir: b.opts.dir, Settings: settings})
	if err != nil {
		return nil, err
	}
	b.plain = &server{Server: s, disk: "plain"}
	return b.plain, nil
}

// slowDisk gives the server whose fdatasync takes a millisecond longer: a network disk, or a synchronous replica.
func (b *bench) slowDisk(ctx context.Context) (*server, error) {
	if b.slow != nil {
		return b.slow, nil
	}
	folder, err := os.MkdirTemp("", "outbox-bench-")
	if err != nil {
		return nil, err
	}
	library, err := compileSlowsync(ctx, folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	s, err := localpg.Start(ctx, localpg.Options{Private: true, Durable: true, Dir: b.opts.dir, Settings: settings,
		Env: []string{"LD_PRELOAD=" + library, fmt.Sprintf("SLOWSYNC_US=%d", slowdown.Microseconds())}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	b.slow = &server{Server: s, disk: "slow", folder: folder}
	return b.slow, nil
}

func compileSlowsync(ctx context.Context, folder string) (library string, err error) {
	if err := os.Chmod(folder, 0o755); err != nil { // the server's account must read it
		return "", err
	}
	source := filepath.Join(folder, "slowsync.c")
	if err := os.WriteFile(source, slowsyncSource, 0o600); err != nil {
		return "", err
	}
	library = filepath.Join(folder, "slowsync.so")
	output, err := exec.CommandContext(ctx, "cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile slowsync.c: %w: %s", err, output)
	}
	return library, os.Chmod(library, 0o755)
}

func (s *server) stop() error {
	if s == nil {
		return nil
	}
	err := s.Stop()
	if s.folder != "" {
		err = errors.Join(err, os.RemoveAll(s.folder))
	}
	return err
}

// database is one contender's database and its pool.
type database struct {
	server *server
	dsn    string
	pool   *pgxpool.Pool
	drop   func(context.Context) error
}

func (s *server) database(ctx context.Context) (*database, error) {
	dsn, drop, err := s.CreateDatabase(ctx)
	if err != nil {
		return nil, err
	}
	db := &database{server: s, dsn: dsn, drop: drop}
	if db.pool, err = newPool(ctx, dsn); err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	return db, nil
}

func newPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	return pgxpool.NewWithConfig(ctx, config)
}

func (d *database) close(ctx context.Context) error {
	d.pool.Close()
	return d.drop(context.WithoutCancel(ctx))
}

// settle vacuums, analyzes and writes a checkpoint, so that none of these falls into the measurement that follows.
func (d *database) settle(ctx context.Context) error {
	_, err := d.pool.Exec(ctx, "vacuum analyze")
	if err == nil {
		_, err = d.pool.Exec(ctx, "checkpoint")
	}
	return err
}
