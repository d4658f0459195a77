package main

import (
	"strings"
	"testing"
	"time"
)

func TestMaskedDestinationsCanBeRecognisedAndNotUsed(t *testing.T) {
	t.Parallel()
	for destination, want := range map[string]string{
		"ana@example.com":                       "a***@example.com",
		"ñandú@example.com":                     "ñ***@example.com",
		`"a@b"@example.com`:                     `"***@example.com`,
		"@example.com":                          "@ex***om",
		"5491145678901":                         "549***01",
		"12345":                                 "***",
		"":                                      "***",
		"https://u:p@example.com:8443/a?key=s3": "https://example.com/***",
		"amqp://broker/vhost":                   "amqp://broker/***",
		"pedidos.creados":                       "ped***os",
	} {
		if got := masked(destination); got != want {
			t.Errorf("%q: got %q, want %q", destination, got, want)
		}
	}
}

func TestProgressIsDrawnOnOneLineThatItLeavesClean(t *testing.T) {
	t.Parallel()
	var w strings.Builder
	p := &progress{&w, "messages", 200}
	for _, done := range []int{0, 100, 200, 250} {
		p.draw(done)
	}
	p.end()
	want := "\rmessages [" + strings.Repeat(" ", 30) + "] 0 of 200" +
		"\rmessages [" + strings.Repeat("#", 15) + strings.Repeat(" ", 15) + "] 100 of 200" +
		"\rmessages [" + strings.Repeat("#", 30) + "] 200 of 200" +
		"\rmessages [" + strings.Repeat("#", 30) + "] 250 of 200" + "\r\x1b[K"
	if got := w.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Reset()
	(&progress{&w, "deleted", 0}).draw(7)
	if got := w.String(); got != "\rdeleted 7" {
		t.Errorf("without a total: got %q", got)
	}
	var none *progress // not a terminal
	none.draw(1)
	none.end()
	if got := (&app{stderr: &w}).progress("messages", 1); got != nil {
		t.Errorf("got %v for something that is no terminal, want none", got)
	}
}

func TestTimesAreAbsoluteOrSoLongAgo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-03-01T10:00:00Z":      time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC),
		"2026-03-01T10:00:00-03:00": time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC),
		"2026-03-01":                time.Date(2026, 3, 1, 0, 0, 0, 0, time.Local),
		"2026-03-01 10:30":          time.Date(2026, 3, 1, 10, 30, 0, 0, time.Local),
	} {
		var got instant
		if err := got.UnmarshalText([]byte(text)); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, ago := range map[string]time.Duration{"2h": 2 * time.Hour, "30d": 30 * 24 * time.Hour, "90s": 90 * time.Second} {
		var got instant
		before := time.Now()
		if err := got.UnmarshalText([]byte(text)); err != nil || got.Before(before.Add(-ago)) || got.After(time.Now().Add(-ago)) {
			t.Errorf("%s: got %v, %v, want so long ago", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "-2h", "2026-13-01", "10:00"} {
		var got instant
		if err := got.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "is no time: write 2h") {
			t.Errorf("%q: got %v, %v, want it refused", text, got, err)
		}
	}
}
