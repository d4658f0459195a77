package config

import (
	"errors"
	"fmt"
	"strings"
)

// Error is something wrong with the configuration.
type Error struct {
	Where string // relay.yaml:12, --batch or RELAY_BATCH
	Key   string // outboxes[0].batch
	Text  string
}

func (e *Error) Error() string {
	var parts []string
	for _, part := range []string{e.Where, e.Key} {
		if part != "" && !strings.HasPrefix(part, "--") {
			parts = append(parts, part+":")
		} else if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, e.Text), " ")
}

// Errors are all the errors of a configuration, in the order of its lines.
func Errors(err error) (all []*Error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, Errors(e)...)
		}
		return all
	}
	var e *Error
	if errors.As(err, &e) {
		return []*Error{e}
	}
	return nil
}

// places says where each key was given; that of the empty key is the file.
type places map[string]string

// of is the place of a key, or of the nearest one that it lies in.
func (p places) of(key string) string {
	for {
		if where, ok := p[key]; ok || key == "" {
			return where
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
}

func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// suggestion is the known name that a wrong one is close to.
func suggestion(wrong string, known []string) string {
	best, least := "", max(len(wrong)/3, 1)+1
	for _, name := range known {
		if n := distance(strings.ToLower(strings.ReplaceAll(wrong, "-", "_")), name); n < least {
			best, least = name, n
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	return "; known are " + strings.Join(known, ", ")
}

// distance is how many letters must be inserted, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
