package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// other is the value of a label for everything that is not known.
const other = "other"

// category keeps to those of the contract: a sender may invent more.
func category(name string) string {
	if outbox.Known(name) {
		return name
	}
	return other
}

// maxCodes bounds the codes of one outbox: they are the providers', who have a few dozen each.
const maxCodes = 100

// codes lets the first codes through.
type codes struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (c *codes) bound(code string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.seen[code]:
		return code
	case len(c.seen) >= maxCodes:
		return other
	case c.seen == nil:
		c.seen = make(map[string]bool)
	}
	c.seen[code] = true
	return code
}

// classes are the classes of SQLSTATE (PostgreSQL manual, appendix A). A trigger may raise others.
const classes = "02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F 34 38 39 3B 3D 3F 40 42 44 53 54 55 57 58 72 F0 HV P0 XX"

func class(state string) string {
	switch {
	case state == "":
		return "none"
	case len(state) == 5 && slices.Contains(strings.Fields(classes), state[:2]):
		return state[:2]
	}
	return other
}
