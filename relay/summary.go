package relay

import (
	"sync"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// Summary counts what one RunOnce did.
type Summary struct {
	Claimed   int // taken or closed by the claim
	Sent      int
	Retried   int // failed for now, due again later
	Failed    int // attempts used up, those closed by the claim included
	Discarded int
	Lost      int // claimed by another relay before the result was written
	Released  int // given back unsent, since too little of the lease was left
	Errors    int // statements of the database that failed
	// LastError is the SQLSTATE of the last such failure, empty when it had none.
	LastError string
	// Warnings are about the options, never about a message.
	Warnings []string
}

// tally counts while many goroutines report.
type tally struct {
	mu sync.Mutex
	s  Summary
}

func (t *tally) outcome(o Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o {
	case Sent:
		t.s.Sent++
	case Retried:
		t.s.Retried++
	case Failed:
		t.s.Failed++
	case Discarded:
		t.s.Discarded++
	case Lost:
		t.s.Lost++
	case Released:
		t.s.Released++
	case Errored: // counted as the failed statement that it is
	}
}

func (t *tally) claimed(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Claimed += n
}

func (t *tally) failure(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s.Errors++
	t.s.LastError = outbox.SQLState(err)
}
