package relay

import (
	"context"
	"testing"

	"github.com/mafesoftware/outbox-relay/claim"
)

// Who hears of the end before the function that is to run then has begun must not go on as if nothing had to be given back.
func TestWhatWasClaimedIsGivenBackHoweverTheEndIsHeard(t *testing.T) {
	t.Parallel()
	for range 2000 {
		r := &relay{}
		r.results = newResults(r)
		r.work = newWork(map[string]int{"": 1}, nil)
		lane := r.work.lanes[""]
		lane.queue = append(lane.queue, &claim.Row{ID: [16]byte{1}})
		ctx, cancel := context.WithCancel(t.Context())
		wait := r.stopAtEnd(ctx)
		heard := make(chan struct{})
		go func() {
			<-ctx.Done()
			wait()
			close(heard)
		}()
		cancel()
		<-heard
		if !r.work.stopped || len(r.results.released) != 1 {
			t.Fatalf("got stopped %v and %d rows given back, want it stopped and one", r.work.stopped, len(r.results.released))
		}
	}
}

func TestWaitForTheEndIsOverAtOnceWhileThereIsNone(t *testing.T) {
	t.Parallel()
	r := &relay{}
	r.results = newResults(r)
	r.work = newWork(map[string]int{"": 1}, nil)
	r.stopAtEnd(t.Context())()
	if r.work.stopped {
		t.Error("got it stopped, want it to go on")
	}
}
