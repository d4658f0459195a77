package config

import (
	"strings"
	"testing"
)

// A file may hold anything. It is read, or refused in whole lines, and never a panic.
func FuzzAnyFileIsReadOrRefused(f *testing.F) {
	for _, text := range []string{everything, "outboxes: &a [*a]\n", "a: &a {<<: *a}\n", "outboxes:\n  - <<: [x]\n", "? [a]\n: b\n", "!!map {}\n", "outboxes: [{name: |\n x}]", "\xff", "%TAG", "outboxes: [{channels: {a: &b {sender: print, <<: *b}}}]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse("relay.yaml", []byte(text), environment{}.lookup)
		if err == nil {
			_ = c.check(environment{}.lookup)
			if _, err := c.YAML(); err != nil {
				t.Error(err)
			}
			return
		}
		faults := Errors(err)
		if len(faults) == 0 {
			t.Errorf("got %v, want an Error", err)
		}
		for _, fault := range faults {
			if !strings.HasPrefix(fault.Where, "relay.yaml") {
				t.Errorf("got %v, want its place", fault)
			}
		}
	})
}
