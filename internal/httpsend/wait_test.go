package httpsend

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestRetryAfterReadsSecondsDatesAndResets(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	unix := func(d time.Duration) string { return strconv.FormatInt(noon.Add(d).Unix(), 10) }
	tests := []struct {
		name   string
		status int
		header map[string]string
		want   time.Duration
	}{
		{"nothing", 429, nil, 0},
		{"seconds", 503, map[string]string{"Retry-After": "60"}, time.Minute},
		{"blanks around", 503, map[string]string{"Retry-After": " 60 "}, time.Minute},
		{"part of a second", 429, map[string]string{"Retry-After": "0.5"}, time.Second / 2},
		{"zero", 429, map[string]string{"Retry-After": "0"}, 0},
		{"negative", 429, map[string]string{"Retry-After": "-5"}, 0},
		{"more than a day", 429, map[string]string{"Retry-After": "86401"}, 24 * time.Hour},
		{"absurd", 429, map[string]string{"Retry-After": strings.Repeat("9", 1000)}, 24 * time.Hour},
		{"words", 429, map[string]string{"Retry-After": "in a minute"}, 0},
		{"infinite", 429, map[string]string{"Retry-After": "Inf"}, 0},
		{"not a number", 429, map[string]string{"Retry-After": "NaN"}, 0},
		{"two points", 429, map[string]string{"Retry-After": "1.2.3"}, 0},
		{"date", 429, map[string]string{"Retry-After": at(time.Hour)}, time.Hour},
		{"date of RFC 850", 429, map[string]string{"Retry-After": noon.Add(time.Minute).Format(time.RFC850)}, time.Minute},
		{"date in the past", 429, map[string]string{"Retry-After": at(-time.Hour)}, 0},
		{"date next year", 429, map[string]string{"Retry-After": at(365 * 24 * time.Hour)}, 24 * time.Hour},
		{"date after 300 years", 429, map[string]string{"Retry-After": "Fri, 30 Nov 2326 12:00:00 GMT"}, 24 * time.Hour},
		{"reset", 429, map[string]string{"Ratelimit-Reset": "7"}, 7 * time.Second},
		{"reset of a moment", 429, map[string]string{"X-Ratelimit-Reset": unix(time.Minute)}, time.Minute},
		{"reset of a moment past", 429, map[string]string{"X-Ratelimit-Reset": unix(-time.Minute)}, 0},
		{"reset that accompanies another failure", 500, map[string]string{"Ratelimit-Reset": "7"}, 0},
		{"negative reset", 429, map[string]string{"Ratelimit-Reset": "-7"}, 0},
		{"reset now", 429, map[string]string{"Ratelimit-Reset": "0"}, 0},
		{"reset in words", 429, map[string]string{"Ratelimit-Reset": "7 s"}, 0},
		{"absurd reset", 429, map[string]string{"Ratelimit-Reset": strings.Repeat("9", 1000)}, 24 * time.Hour},
		{"what is left", 429, map[string]string{"Ratelimit-Limit": "7", "Ratelimit-Remaining": "7", "X-Ratelimit-Remaining": "7"}, 0},
		{"both, the reset later", 429, map[string]string{"Retry-After": "7", "Ratelimit-Reset": "60"}, 7 * time.Second},
		{"both", 429, map[string]string{"Retry-After": "60", "Ratelimit-Reset": "7"}, time.Minute},
		{"one that says nothing", 429, map[string]string{"Retry-After": "soon", "Ratelimit-Reset": "7"}, 7 * time.Second},
	}
	for _, test := range tests {
		header := http.Header{"Date": {noon.Format(http.TimeFormat)}}
		for name, value := range test.header {
			header.Set(name, value)
		}
		if got := (Answer{Status: test.status, Header: header}).RetryAfter(); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// Our clock may be wrong by hours; the destination's date is meant by its own.
func TestRetryAfterMeasuresADateByTheClockOfTheDestination(t *testing.T) {
	t.Parallel()
	header := http.Header{"Retry-After": {noon.Add(time.Hour).Format(http.TimeFormat)}}
	if got := (Answer{Header: header}).RetryAfter(); got == time.Hour {
		t.Errorf("got %v without the destination's date", got)
	}
	header.Set("Date", noon.Format(http.TimeFormat))
	if got := (Answer{Header: header}).RetryAfter(); got != time.Hour {
		t.Errorf("got %v, want an hour", got)
	}
}

func FuzzRetryAfterIsBetweenNothingAndADay(f *testing.F) {
	f.Add("60")
	f.Add("1e400")
	f.Add("Mon, 30 Nov 2026 12:00:00 GMT")
	f.Add("9999999999")
	f.Fuzz(func(t *testing.T, s string) {
		if got := parseWait(s, noon); got < 0 || got > 24*time.Hour {
			t.Errorf("%q: got %v", s, got)
		}
	})
}
