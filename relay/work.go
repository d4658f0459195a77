package relay

import (
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mafesoftware/outbox-relay/claim"
)

// work hands claimed rows to a bounded group of goroutines. They take the next row by themselves, so a full queue never
// waits for the loop.
type work struct {
	limit   int
	process func(claim.Row)
	// roomy has one element when room may have grown. Not the bell: a wake-up must never be mistaken for this.
	roomy chan struct{}
	group errgroup.Group

	mu      sync.Mutex
	queue   []claim.Row
	running int
	lowMark int
	stopped bool
}

func newWork(limit int, process func(claim.Row)) *work {
	w := &work{limit: limit, process: process, roomy: make(chan struct{}, 1)}
	w.group.SetLimit(limit)
	return w
}

// add queues rows. It does not block. After stop it gives them back: their claim was under way when the end came.
func (w *work) add(rows []claim.Row) (refused []claim.Row) {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return rows
	}
	w.queue = append(w.queue, rows...)
	begin := min(len(w.queue), w.limit-w.running)
	w.running += begin
	w.mu.Unlock()
	for range begin {
		w.group.Go(w.run)
	}
	return nil
}

func (w *work) run() error {
	for {
		row, ok := w.next()
		if !ok {
			return nil
		}
		w.process(row)
	}
}

// next takes a row; without one, the goroutine counts as ended.
func (w *work) next() (claim.Row, bool) {
	w.mu.Lock()
	if len(w.queue) == 0 {
		w.running--
		w.mu.Unlock()
		signal(w.roomy)
		return claim.Row{}, false
	}
	row := w.queue[0]
	w.queue[0] = claim.Row{} // lets go of the payload
	w.queue = w.queue[1:]
	low := len(w.queue) == w.lowMark
	w.mu.Unlock()
	if low {
		signal(w.roomy)
	}
	return row, true
}

// room says how many rows may be claimed now: enough to keep every goroutine busy, and ahead more to bridge the next
// claim. It is zero while the queue is more than half of that, so that claims do not become small.
func (w *work) room(ahead int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lowMark = ahead / 2
	if len(w.queue) > w.lowMark {
		return 0
	}
	return w.limit + ahead - w.running - len(w.queue)
}

// stop takes back what nobody has begun. Nothing begins any more.
func (w *work) stop() []claim.Row {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := w.queue
	w.queue, w.stopped = nil, true
	return rows
}

// wait returns when every goroutine has ended. Nothing may be added meanwhile.
func (w *work) wait() { _ = w.group.Wait() }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
