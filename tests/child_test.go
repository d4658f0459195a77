package tests

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// childDSN makes this test binary a relay on the default table of a database. It prints what it sends and never ends.
const childDSN = "OUTBOX_TEST_RELAY"

// childLease is short, so that what a killed child held comes back soon, and longer than a machine stands still.
const childLease = 15 * time.Second

func child(dsn string) {
	pool, err := pgxpool.New(context.Background(), dsn)
	if err == nil {
		senders := relay.Senders{"webhook": transporte.Print(os.Stdout)}
		err = relay.Run(context.Background(), pool, outbox.Table{}, senders, relay.Options{Lease: childLease})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// process is a relay of its own that prints its messages.
type process struct {
	cmd  *exec.Cmd
	read chan struct{} // closed when its output has ended

	mu      sync.Mutex
	printed []string // ids
	grown   chan struct{}
}

// start runs a command and reads what it prints. It is killed with the test if it has not ended.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &logText{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, read: make(chan struct{}), grown: make(chan struct{}, 1)}
	go p.collect(output)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-p.read
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the process said: %s", said.lines())
		}
	})
	return p
}

func (p *process) collect(output io.Reader) {
	defer close(p.read)
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // a line that was cut was not sent
		}
		var m struct{ ID string }
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		p.mu.Lock()
		p.printed = append(p.printed, m.ID)
		p.mu.Unlock()
		select {
		case p.grown <- struct{}{}:
		default:
		}
	}
}

func (p *process) ids() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.printed)
}

// awaitPrinted waits for n messages.
func (p *process) awaitPrinted(t *testing.T, n int) {
	t.Helper()
	for len(p.ids()) < n {
		select {
		case <-p.grown:
		case <-p.read:
			t.Fatalf("the process ended after %d messages, want %d", len(p.ids()), n)
		case <-time.After(patience):
			t.Fatalf("got %d messages printed, want %d", len(p.ids()), n)
		}
	}
}

// buildRelay builds the command, with the race detector when this test has it: its packages are compiled already then.
func buildRelay(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "relay")
	args := []string{"build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if output, err := exec.CommandContext(t.Context(), "go", append(args, "../cmd/relay")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, output)
	}
	return path
}
