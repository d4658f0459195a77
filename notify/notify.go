// Package notify tells a relay when to look at its table: when an insert commits, when the next row falls due, and every
// few seconds in case both were missed.
//
// It knows channels and times, not messages. A wake-up is a hint and may come too often; none may be needed, since the
// fallback poll finds what they miss.
package notify

import "time"

// Cause says why a relay should look.
type Cause string

const (
	Start    Cause = "start"    // it has just begun
	Listen   Cause = "listen"   // LISTEN was confirmed: what was committed before it was not announced
	Notified Cause = "notify"   // an insert committed
	Help     Cause = "help"     // a relay has more than it can carry, or gave rows back
	Schedule Cause = "schedule" // an insert committed whose row falls due sooner than the next that was known
	Due      Cause = "due"      // the next row falls due now
	Poll     Cause = "poll"     // the fallback poll
	Watched  Cause = "watch"    // writers may be silent: see Watch
)

// MaxPollInterval is the longest fallback poll: the insert trigger announces rows that fall due within this time, later
// ones are seen by the poll.
const MaxPollInterval = 15 * time.Minute
