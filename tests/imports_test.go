package tests

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mafesoftware/outbox-relay/"

// mayImport is the drawing of who may know whom, by folder: a package below a folder of this list follows its nearest
// entry. Arrows point down only. Tests may import what they like.
var mayImport = map[string][]string{
	"cmd/relay": {"admin", "doctor", "internal/config", "internal/health", "internal/plural", "metrics", "tracing", "retention", "migrate", "relay", "transporte", "notify", "claim", "outbox", "sql"},
	"examples":  {"migrate", "relay", "transporte", "notify", "claim", "outbox", "sql", "internal/localpg", "examples"},
	// What looks on while a relay works, or works beside it.
	"metrics":         {"retention", "relay", "notify", "outbox", "sql"},
	"tracing":         {"relay", "outbox"},
	"retention":       {"notify", "outbox", "internal/retry"},
	"doctor":          {"migrate", "notify", "outbox", "sql", "internal/plural"},
	"internal/health": {"relay", "outbox"},

	"relay":      {"transporte", "notify", "claim", "outbox", "internal/retry"},
	"claim":      {"outbox", "sql"},
	"notify":     {"outbox", "internal/retry"},
	"transporte": {"outbox", "transporte", "internal/httpsend", "internal/whatsappcloud"},
	// The configuration of the command.
	"internal/config": {"relay", "outbox"},
	// What senders share and no user may touch.
	"internal/httpsend":      {"outbox", "transporte", "internal/httpsend"},
	"internal/whatsappcloud": {"outbox", "transporte", "internal/httpsend"},
	"migrate":                {"outbox", "sql", "internal/retry"},
	"admin":                  {"outbox", "sql", "internal/retry"},
	// What those share who ask a database again and again.
	"internal/retry":  {"outbox"},
	"internal/plural": {},
	"outbox":          {"sql"},
	"sql":             {},
	"tests":           {},
	// A throw-away server for demo, tests and measurements: no user may come to depend on it.
	"internal/localpg": {"internal/localpg"},
	// For tests alone.
	"internal/waitfor": {},
}

// mayLog are the folders whose packages log; the others return errors.
var mayLog = []string{"cmd", "examples", "relay", "notify", "internal/httpsend/sendertest"}

// mustNotCarry is what a program does not get by importing a package: someone who only enqueues wants a driver and
// nothing else.
var mustNotCarry = map[string][]string{
	"outbox":     {"github.com/prometheus", "go.opentelemetry.io", "github.com/jackc/tern", "github.com/jackc/pgxlisten", "github.com/testcontainers"},
	"transporte": {"github.com/prometheus", "go.opentelemetry.io", "github.com/jackc/tern", "github.com/jackc/pgxlisten", "github.com/testcontainers"},
	"doctor":     {"github.com/testcontainers"},
	"relay":      {"github.com/prometheus", "go.opentelemetry.io", "github.com/jackc/tern", "github.com/testcontainers"},
	"cmd/relay":  {"github.com/testcontainers", "testing"},
}

type goPackage struct {
	ImportPath    string
	Imports, Deps []string
}

func packages(t *testing.T) (found []goPackage) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
}

func TestImportsFollowTheDrawing(t *testing.T) {
	t.Parallel()
	found := packages(t)
	if len(found) < 8 {
		t.Fatalf("got %d packages, want the module's", len(found))
	}
	for _, p := range found {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, drawn := mayImport[nearest(name, mayImport)]
		if !drawn {
			t.Errorf("%s does not stand in the drawing", name)
		}
		for _, imported := range p.Imports {
			if below, ours := strings.CutPrefix(imported, module); ours && !slices.ContainsFunc(allowed, func(folder string) bool { return within(below, folder) }) {
				t.Errorf("%s imports %s, want only %v", name, below, allowed)
			}
			if within(imported, "log") && !slices.ContainsFunc(mayLog, func(folder string) bool { return within(name, folder) }) {
				t.Errorf("%s logs, want only %v to", name, mayLog)
			}
		}
	}
}

func TestProgramsDoNotCarryWhatTheyDoNotUse(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, unwanted := range mustNotCarry[nearest(strings.TrimPrefix(p.ImportPath, module), mustNotCarry)] {
			if i := slices.IndexFunc(p.Deps, func(dep string) bool { return within(dep, unwanted) }); i >= 0 {
				t.Errorf("%s carries %s", p.ImportPath, p.Deps[i])
			}
		}
	}
}

// within tells whether path is folder or lies below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// nearest is the longest entry that path lies in.
func nearest(path string, entries map[string][]string) (entry string) {
	for e := range entries {
		if within(path, e) && len(e) > len(entry) {
			entry = e
		}
	}
	return entry
}
