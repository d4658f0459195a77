package localpg

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindTakesTheExplicitFolderThenPathThenTheHighestVersion(t *testing.T) {
	root := t.TempDir()
	places := []string{filepath.Join(root, "pg", "*", "bin"), filepath.Join(root, "other", "*")}
	explicit, inPath := fakeServer(t, root, "explicit"), fakeServer(t, root, "path")
	fakeServer(t, root, "pg/9.6/bin")
	highest := fakeServer(t, root, "pg/15/bin")
	fakeServer(t, root, "other/18")
	if err := os.MkdirAll(filepath.Join(root, "pg/16/bin"), 0o755); err != nil { // 16 has client programs only
		t.Fatal(err)
	}

	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"OUTBOX_PG_BIN": explicit, "PATH": inPath}, explicit},
		{map[string]string{"PATH": root + string(filepath.ListSeparator) + inPath}, inPath},
		{map[string]string{"PATH": root}, highest},
		{nil, highest},
	} {
		got, err := finder{getenv: lookup(c.env), places: places}.find()
		if err != nil || got != c.want {
			t.Errorf("environment %v: got %q, %v, want %q", c.env, got, err, c.want)
		}
	}
}

func TestFindNeverPassesOverAWrongExplicitFolder(t *testing.T) {
	root := t.TempDir()
	env := map[string]string{"OUTBOX_PG_BIN": root, "PATH": fakeServer(t, root, "path")}
	got, err := finder{getenv: lookup(env)}.find()
	if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), root) {
		t.Fatalf("got %q, %v, want an error that names %s and is not ErrNone", got, err, root)
	}
}

func TestStartWithoutPostgresIsErrNone(t *testing.T) {
	_, err := start(t.Context(), Options{}, finder{getenv: lookup(nil)})
	if !errors.Is(err, ErrNone) {
		t.Fatalf("got %v, want ErrNone", err)
	}
}

func TestStartNeverPassesOverADatabaseURLThatDoesNotAnswer(t *testing.T) {
	f := systemFinder()
	f.getenv = lookup(map[string]string{
		"DATABASE_URL": "postgres://somebody:hunter2@127.0.0.1:1/app?sslmode=disable",
		"PATH":         os.Getenv("PATH"),
	})
	s, err := start(t.Context(), Options{}, f)
	if err == nil {
		t.Fatalf("got a server at %s, want an error", s.DSN())
	}
	if !strings.Contains(err.Error(), "DATABASE_URL") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %q, want a message that names DATABASE_URL and keeps the password to itself", err)
	}
}

func lookup(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func fakeServer(t *testing.T, root, folder string) string {
	t.Helper()
	folder = filepath.Join(root, folder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(folder, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
