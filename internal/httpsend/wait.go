package httpsend

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait bounds what a destination can ask for; the relay honours no more.
const longestWait = 24 * time.Hour

// RetryAfter returns how long the destination asks to wait, 0 if it does not. It reads Retry-After (RFC 9110, 10.2.3:
// seconds or a date) and, with status 429 only and if that says nothing, ratelimit-reset and x-ratelimit-reset (seconds, or
// seconds since 1970): those are about a window, which need not be over for the next request to be let in. Whatever is negative, past or not understood counts as not said; more than 24 h is 24 h.
func (a Answer) RetryAfter() time.Duration {
	now := a.now()
	if wait := parseWait(a.Header.Get("Retry-After"), now); wait > 0 {
		return wait
	}
	if a.Status != http.StatusTooManyRequests { // the others send it along with every answer
		return 0
	}
	for _, name := range []string{"Ratelimit-Reset", "X-Ratelimit-Reset"} {
		if wait := parseWait(a.Header.Get(name), now); wait > 0 {
			return wait
		}
	}
	return 0
}

// now is the destination's clock if it says the time: a date that it names is meant by that clock, not by ours.
func (a Answer) now() time.Time {
	if t, err := http.ParseTime(a.Header.Get("Date")); err == nil {
		return t
	}
	return time.Now()
}

func parseWait(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if at, err := http.ParseTime(s); err == nil {
		return clamp(at.Sub(now))
	}
	if strings.Trim(s, "0123456789.") != "" {
		return 0
	}
	seconds, _ := strconv.ParseFloat(s, 64) // 0 if it is no number, infinite if it is too large a one
	switch {
	case seconds >= 1e9 && seconds < 1e10: // since 1970: in this century, the next, or the one after
		return clamp(time.Unix(int64(seconds), 0).Sub(now))
	case seconds > longestWait.Seconds():
		return longestWait
	}
	return time.Duration(seconds * float64(time.Second))
}

func clamp(wait time.Duration) time.Duration { return max(0, min(wait, longestWait)) }
