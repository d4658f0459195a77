package localpg

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNone is returned by Start when there is no Postgres to use.
var ErrNone = errors.New("no Postgres found: install one with `make postgres`, " +
	"or set DATABASE_URL to a server on which databases may be created, or OUTBOX_PG_BIN to the folder of initdb and postgres")

//go:embed places.txt
var placesFile string

// finder looks for the folder that holds initdb and postgres.
type finder struct {
	getenv func(string) string
	places []string // patterns as in places.txt
}

func systemFinder() finder {
	var places []string
	for line := range strings.Lines(placesFile) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			places = append(places, line)
		}
	}
	return finder{getenv: os.Getenv, places: places}
}

// find gives OUTBOX_PG_BIN, else the first folder of PATH, else the first of the places that holds both programs. It
// wraps ErrNone when there is none; a wrong OUTBOX_PG_BIN is an error of its own and never passed over.
func (f finder) find() (string, error) {
	if dir := f.getenv("OUTBOX_PG_BIN"); dir != "" {
		if !holdsServer(dir) {
			return "", fmt.Errorf("OUTBOX_PG_BIN is %q, which does not hold initdb and postgres", dir)
		}
		return filepath.Abs(dir)
	}
	for _, dir := range filepath.SplitList(f.getenv("PATH")) {
		if filepath.IsAbs(dir) && holdsServer(dir) {
			return dir, nil
		}
	}
	for _, pattern := range f.places {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("pattern %q: %w", pattern, err)
		}
		slices.SortFunc(dirs, func(a, b string) int { return slices.Compare(versionIn(b), versionIn(a)) })
		if i := slices.IndexFunc(dirs, holdsServer); i >= 0 {
			return dirs[i], nil
		}
	}
	return "", ErrNone
}

func holdsServer(dir string) bool {
	return executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres"))
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

var number = regexp.MustCompile(`\d+`)

// versionIn gives the numbers in a path, so that 9.6 sorts below 15.
func versionIn(path string) []int {
	var version []int
	for _, digits := range number.FindAllString(path, -1) {
		n, _ := strconv.Atoi(digits)
		version = append(version, n)
	}
	return version
}
