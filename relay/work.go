package relay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
)

// work hands claimed rows to bounded goroutines, those of each channel apart, so that a channel whose sends hang keeps only
// its own goroutines. They take the next row by themselves, so a full queue never waits for the loop.
type work struct {
	// process sends a row. When it leaves the send behind it calls goOn, for another goroutine to take this one's place, and
	// gives false once the send comes back after all.
	process func(row *claim.Row, goOn func()) bool
	// roomy has one element when room may have grown. Not the bell: a wake-up must never be mistaken for this.
	roomy chan struct{}
	// running counts places, not goroutines: one that hangs in a send has lost its own, and nobody waits for it.
	running sync.WaitGroup
	names   []string // of all lanes

	mu sync.Mutex
	// lanes has a lane for each channel with a sender, and under "" one for all others.
	lanes    map[string]*lane
	stopped  bool
	reopened bool // a lane that was shut at the last look has room again
}

// lane is what one channel has in hand.
type lane struct {
	limit   int // goroutines
	send    average
	queue   []*claim.Row
	running int
	lowMark int
	shut    bool // at the last look there was no room
}

// newWork makes a lane for each channel with so many goroutines. There must be one for "".
func newWork(limits map[string]int, process func(*claim.Row, func()) bool) *work {
	w := &work{process: process, roomy: make(chan struct{}, 1), lanes: map[string]*lane{}}
	for channel, limit := range limits {
		w.lanes[channel] = &lane{limit: limit}
	}
	w.names = slices.Sorted(maps.Keys(limits))
	return w
}

func (w *work) lane(channel string) *lane {
	if l, ok := w.lanes[channel]; ok {
		return l
	}
	return w.lanes[""]
}

// add queues rows. It does not block. After stop it gives them back: their claim was under way when the end came.
func (w *work) add(rows []*claim.Row) (refused []*claim.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return rows
	}
	for _, row := range rows {
		l := w.lane(row.Channel)
		l.queue = append(l.queue, row)
		if l.running < l.limit {
			l.running++
			w.running.Add(1)
			go w.run(l)
		}
	}
	return nil
}

// run sends what the lane has queued. It sends by itself: a goroutine for each send would grow a stack for each.
func (w *work) run(l *lane) {
	var begun time.Time
	goOn := func() {
		l.send.add(time.Since(begun))
		go w.run(l)
	}
	for {
		row, ok := w.next(l)
		if !ok {
			w.running.Done()
			return
		}
		begun = time.Now()
		if !w.process(row, goOn) {
			return
		}
		l.send.add(time.Since(begun))
	}
}

// next takes a row; without one, the goroutine gives up its place.
func (w *work) next(l *lane) (row *claim.Row, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(l.queue) == 0 {
		l.running--
	} else {
		row, ok = l.queue[0], true
		l.queue[0] = nil // lets go of the payload
		l.queue = l.queue[1:]
	}
	if len(l.queue) <= l.lowMark && (!ok || len(l.queue) == l.lowMark) {
		w.reopened = w.reopened || l.shut
		signal(w.roomy)
	}
	return row, ok
}

// room says how many rows may be claimed now: for each lane enough to keep its goroutines busy, and more to bridge a claim
// that takes so long, at most batch. A lane has none while its queue is more than half of that, so that claims do not become
// small. open are the channels that have room, nil if all have.
func (w *work) room(claim time.Duration, batch int) (n int, open []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reopened = false
	shut := 0
	for channel, l := range w.lanes {
		ahead := ahead(claim, l.send.get(), l.limit, batch)
		l.lowMark = ahead / 2
		free := l.limit + ahead - l.running - len(l.queue)
		if l.shut = len(l.queue) > l.lowMark || free <= 0; l.shut {
			shut++
			continue
		}
		if channel != "" { // rows of other channels are settled at once, and need no room
			n += free
			open = append(open, channel)
		}
	}
	if shut == 0 {
		return min(n, batch), nil
	}
	if len(open) == 0 {
		return 0, nil
	}
	slices.Sort(open)
	return min(n, batch), open
}

// more tells whether a lane that had no room at the last look has some now.
func (w *work) more() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reopened
}

// withdraw takes back what nobody has begun and which satisfies a condition.
func (w *work) withdraw(which func(*claim.Row) bool) (rows []*claim.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lanes {
		var kept []*claim.Row
		for _, row := range l.queue {
			if which(row) {
				rows = append(rows, row)
			} else {
				kept = append(kept, row)
			}
		}
		l.queue = kept
	}
	return rows
}

// stop takes back what nobody has begun. Nothing begins any more.
func (w *work) stop() (rows []*claim.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, l := range w.lanes {
		rows = append(rows, l.queue...)
		l.queue = nil
	}
	return rows
}

// wait returns when nothing is being sent any more but what was left behind. Nothing may be added meanwhile.
func (w *work) wait() { w.running.Wait() }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
