package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/relay"
)

// line says what has just become of a message.
func line(e *entry, now time.Time) string {
	last := e.results[len(e.results)-1]
	return fmt.Sprintf("%s  %-8s  %-19s  %-18s  %-21s  %s",
		now.Format("15:04:05.000"), e.Channel, mask(e.Destination), e.Template, timing(e, last.Number), outcome(last))
}

func timing(e *entry, attempt int) string {
	switch {
	case attempt > 1:
		return fmt.Sprintf("attempt %d", attempt)
	case e.commit != nil:
		return fmt.Sprintf("%5.2f ms after commit", milliseconds(e.commit.after(e.begun)))
	}
	return fmt.Sprintf("%5.2f ms late", milliseconds(e.late()))
}

// late is by the clock that set the reminder's time.
func (e *entry) late() time.Duration { return e.begun.Sub(e.ScheduledFor) }

func outcome(r relay.Recorded) string {
	switch r.Outcome {
	case relay.Sent:
		return "sent"
	case relay.Retried:
		return fmt.Sprintf("again in %.1f s: %s", r.RetryIn.Seconds(), reason(r))
	case relay.Discarded, relay.Failed:
		return string(r.Outcome) + ": " + reason(r)
	}
	return string(r.Outcome)
}

func reason(r relay.Recorded) string { return fmt.Sprintf("%s (%s)", r.Category, r.Code) }

// mask leaves of a recipient as much as tells two of them apart on a screen.
func mask(recipient string) string {
	if name, domain, found := strings.Cut(recipient, "@"); found {
		return name[:min(1, len(name))] + "***@" + domain
	}
	if len(recipient) < 8 {
		return "***"
	}
	return "***" + recipient[len(recipient)-3:]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
