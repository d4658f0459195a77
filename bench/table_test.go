package main

import (
	"strings"
	"testing"
)

func TestNumberKeepsThreeDigitsThatCount(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.123: "0.12", 9.87: "9.87", 12.34: "12.3", 123.4: "123", 1234: "1,234", 12345678: "12,345,678"} {
		if got := number(v, true); got != want {
			t.Errorf("%g: got %s, want %s", v, got, want)
		}
	}
	if got := number(1, false); got != "-" {
		t.Errorf("without a value: got %s, want -", got)
	}
}

func TestTableHasARowForEachContender(t *testing.T) {
	t.Parallel()
	b := newBench(options{})
	for _, f := range []figure{
		{contender: "ours", load: "1 writers", value: 100},
		{contender: "ours", load: "8 writers", value: 800},
		{contender: "NOTIFY trigger", load: "1 writers", value: 90},
	} {
		f.suite, f.disk, f.metric, f.unit = "writers", "slow", "commits", "tx/s"
		b.add(f)
	}
	tables := b.tables("writers", "Writers")
	if len(tables) != 1 {
		t.Fatalf("got %d tables, want 1", len(tables))
	}
	var page strings.Builder
	tables[0].markdown(&page)
	const want = "|  | 1 writers commits, tx/s | 8 writers commits, tx/s |\n|---|---:|---:|\n| ours | 100 | 800 |\n| NOTIFY trigger | 90.0 | - |\n"
	if page.String() != want {
		t.Errorf("got\n%swant\n%s", page.String(), want)
	}
}
