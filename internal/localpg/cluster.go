package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// cluster is a data folder and the server that runs on it.
type cluster struct {
	bin     string
	folder  string // holds data and log, and the socket unless its path would be too long
	socket  string // the folder of the Unix socket
	port    int
	tcp     bool
	env     []string
	account account
	reaper  *reaper

	mu      sync.Mutex
	server  *process // the latest, which may have ended
	removed bool
}

type account struct{ uid, gid int }

// newCluster initialises a data folder and starts a server on it.
func newCluster(ctx context.Context, bin string, opts Options) (*cluster, error) {
	c := &cluster{bin: bin, port: 5432, tcp: opts.TCP, env: opts.Env}
	var err error
	if c.account, err = serverAccount(); err != nil {
		return nil, err
	}
	if err := c.makeFolders(opts); err != nil {
		return nil, err
	}
	err = c.initialise(ctx, opts)
	if err == nil {
		err = c.firstBoot(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

func (c *cluster) makeFolders(opts Options) error {
	parent := dataFolder()
	if opts.Durable {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(cmp.Or(opts.Dir, parent))
	if err != nil {
		return err
	}
	if c.folder, err = c.makeFolder(parent); err != nil {
		return err
	}
	c.socket = c.folder
	if len(c.folder) > 80 { // a socket's path may have 103 bytes on macOS, 107 on Linux
		if c.socket, err = c.makeFolder("/tmp"); err != nil {
			return errors.Join(err, os.Remove(c.folder))
		}
	}
	if c.reaper, err = startReaper(ownGroup(), []string{c.folder, c.socket}); err != nil {
		return errors.Join(err, os.RemoveAll(c.folder), os.RemoveAll(c.socket))
	}
	return nil
}

func (c *cluster) makeFolder(parent string) (string, error) {
	folder, err := os.MkdirTemp(parent, "outbox-pg-")
	if err != nil {
		return "", err
	}
	if err := os.Chown(folder, c.account.uid, c.account.gid); err != nil {
		return "", errors.Join(err, os.Remove(folder))
	}
	return folder, nil
}

func (c *cluster) initialise(ctx context.Context, opts Options) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "--no-sync", "--locale=C", "--encoding=UTF8",
		"-A", "trust", "-U", "postgres", "-D", c.data())
	cmd.Dir = c.folder
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = c.account.attributes()
	cmd.WaitDelay = 5 * time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, end(output))
	}

	settings := map[string]string{}
	if !opts.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, opts.Settings)
	return appendSettings(filepath.Join(c.data(), "postgresql.conf"), settings)
}

func appendSettings(path string, settings map[string]string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if _, err := fmt.Fprintf(file, "%s = '%s'\n", name, quote.Replace(settings[name])); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) shutdown(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.shutdown(ctx)
}

func (c *cluster) kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.kill()
}

func (c *cluster) restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed {
		return errors.New("the server was stopped for good and its data removed")
	}
	if err := c.server.shutdown(ctx); err != nil {
		return err
	}
	return c.boot(ctx)
}

func (c *cluster) remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed {
		return nil
	}
	if c.server != nil {
		if err := c.server.kill(); err != nil {
			return err
		}
	}
	c.removed = true
	return c.reaper.removeFolders()
}

func (c *cluster) data() string { return filepath.Join(c.folder, "data") }

func (c *cluster) log() string { return filepath.Join(c.folder, "log") }
