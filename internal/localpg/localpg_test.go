package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
)

// folderOfAbandonedServer makes this binary start a server there, print its address and wait to be killed.
const folderOfAbandonedServer = "LOCALPG_TEST_ABANDON_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderOfAbandonedServer); dir != "" {
		s, err := Start(context.Background(), Options{Private: true, TCP: true, Dir: dir})
		if err != nil {
			panic(err)
		}
		fmt.Println(s.DSN())
		select {}
	}
	os.Exit(m.Run())
}

func TestRestartKeepsDataAndAddress(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{"unix socket": {}, "tcp": {TCP: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startPrivate(t, opts)
			dsn := s.DSN()
			run(t, dsn, "create table kept (n integer)")
			for i, end := range []func() error{
				func() error { return s.Shutdown(t.Context()) },
				s.Kill,
				func() error { return nil }, // Restart of a server that is up
			} {
				run(t, dsn, fmt.Sprintf("insert into kept values (%d)", i))
				if err := end(); err != nil {
					t.Fatal(err)
				}
				if i < 2 {
					mustBeDown(t, dsn)
				}
				if err := s.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				if s.DSN() != dsn {
					t.Fatalf("got address %s, want %s", s.DSN(), dsn)
				}
				if got, want := query[int](t, dsn, "select count(*)::integer from kept"), i+1; got != want {
					t.Errorf("got %d rows, want %d", got, want)
				}
			}
		})
	}
}

func TestStopAndKillOfAServerThatIsDownDoNothing(t *testing.T) {
	t.Parallel()
	s := startPrivate(t, Options{})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Kill(), s.Shutdown(t.Context()), s.Stop(), s.Stop()); err != nil {
		t.Error(err)
	}
	if err := s.Restart(t.Context()); err == nil {
		t.Error("a server started after Stop had removed its data")
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	tooLongForASocket := filepath.Join(openFolder(t), strings.Repeat("long", 20))
	if err := os.Mkdir(tooLongForASocket, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{openFolder(t), tooLongForASocket} {
		s := startPrivate(t, Options{TCP: true, Dir: dir})
		if entries(t, dir) != 1 {
			t.Fatal("the server did not use Options.Dir")
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if n := entries(t, dir); n > 0 {
			t.Errorf("%d folders left in %s", n, dir)
		}
		if _, err := os.Stat(s.own.socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket's folder: got %v, want it gone", err)
		}
		mustBeDown(t, s.DSN())
	}
}

func TestFailedStartLeavesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	_, err := Start(t.Context(), Options{Private: true, Dir: dir, Settings: map[string]string{"no_such_parameter": "1"}})
	if err == nil || !strings.Contains(err.Error(), "no_such_parameter") {
		t.Errorf("got %v, want the server's complaint about no_such_parameter", err)
	}
	if n := entries(t, dir); n > 0 {
		t.Errorf("%d folders left", n)
	}
}

// A test binary that is killed runs no deferred call.
func TestServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), folderOfAbandonedServer+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dsn, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	dsn = strings.TrimSpace(dsn)
	run(t, dsn, "select 1")

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	waitfor.True(t, "the folder to be gone", func() bool { return entries(t, dir) == 0 })
	mustBeDown(t, dsn)
}

func TestServersStartSideBySide(t *testing.T) {
	t.Parallel()
	servers := make([]*Server, 4)
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() {
			var err error
			if servers[i], err = Start(t.Context(), Options{Private: true, TCP: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, s := range servers {
		if s == nil {
			continue
		}
		defer s.Stop()
		seen[query[string](t, s.DSN(), "select system_identifier::text from pg_control_system()")] = true
	}
	if len(seen) != len(servers) {
		t.Errorf("got %d servers, want %d", len(seen), len(servers))
	}
}

func TestSettingsAndEnvironmentReachTheServer(t *testing.T) {
	t.Parallel()
	odd := `it's 100 \% odd`
	s := startPrivate(t, Options{
		Durable:  true,
		Settings: map[string]string{"outbox.odd": odd, "max_connections": "17"},
		Env:      []string{"OUTBOX_ENV=seen"},
	})
	for setting, want := range map[string]string{
		"show fsync":           "on",
		"show max_connections": "17",
		"show outbox.odd":      odd,
	} {
		if got := query[string](t, s.DSN(), setting); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
	run(t, s.DSN(), "create table env (line text)")
	run(t, s.DSN(), "copy env from program 'printenv OUTBOX_ENV'")
	if got := query[string](t, s.DSN(), "select line from env"); got != "seen" {
		t.Errorf("got OUTBOX_ENV=%q, want seen", got)
	}
}

func startPrivate(t *testing.T, opts Options) *Server {
	t.Helper()
	opts.Private = true
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func run(t *testing.T, dsn, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func query[T any](t *testing.T, dsn, statement string) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), statement).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func mustBeDown(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		conn.Close(t.Context())
		t.Fatal("the server still answers")
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		t.Fatalf("the server still answers: %v", err)
	}
}

// openFolder is one that the account of the server can reach, which t.TempDir of root is not.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
