package main

import (
	"context"
	"testing"
	"time"
)

func TestProbeSeesAMessageThatIsHandledTwice(t *testing.T) {
	t.Parallel()
	p := newProbe(2)
	p.handle(0, time.Now())
	p.handle(1, time.Now())
	if err := p.exactlyOnce(2); err != nil {
		t.Errorf("each was handled once: %v", err)
	}
	p.handle(1, time.Now())
	if p.exactlyOnce(2) == nil || p.twice() != 1 {
		t.Errorf("message 1 was handled twice: got %v, %d", p.exactlyOnce(2), p.twice())
	}
	if err := p.exactlyOnce(1); err != nil {
		t.Errorf("message 0 was handled once: %v", err)
	}
}

func TestProbeSeesAMessageThatIsMissing(t *testing.T) {
	t.Parallel()
	p := newProbe(2)
	p.handle(0, time.Now())
	if p.exactlyOnce(2) == nil {
		t.Error("message 1 was never handled, and nothing is said of it")
	}
	if p.waitFor(context.Background(), 2, time.Millisecond) == nil {
		t.Error("waited for two messages, of which one came, and nothing is said of it")
	}
	if err := p.waitFor(context.Background(), 1, time.Minute); err != nil {
		t.Errorf("one message came: %v", err)
	}
}

func TestLatencyIsFromCommitToHandler(t *testing.T) {
	t.Parallel()
	p := newProbe(2)
	p.commit(1)
	p.handle(1, p.base.Add(time.Duration(p.committed[1].Load())+3*time.Millisecond))
	if got := p.latencies(1); len(got) != 1 || got[0] != 3 {
		t.Errorf("got %v, want [3]", got)
	}
}
