package admin

import (
	"fmt"
	"strings"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// way is one of the orders in which rows are gone through: that of an index, or of the table's blocks. Which one is best
// follows from the filter; each step along it looks at a bounded number of rows, however few of them fit.
type way struct {
	name string
	// key are the expressions of the order, of type timestamptz and uuid or as cast says.
	key, cast [2]string
	desc      bool
	scope     string // the condition that the index has or needs
}

const (
	// stepRows is how many entries of an index one step looks at.
	stepRows = 5000
	// stepBlocks is how many of the table's 8 kB blocks one step looks at: 4 MB.
	stepBlocks = 512
)

// wayOf chooses. oldest asks for what failed first; a list has it last.
func wayOf(f Filter, oldest bool) way {
	switch {
	case len(f.IDs) > 0:
		return way{name: "id", key: [2]string{"o.id", ""}, cast: [2]string{"uuid", ""}}
	case f.Key != "":
		return way{name: "key", key: [2]string{"o.id", ""}, cast: [2]string{"uuid", ""}}
	case f.within(outbox.Failed, outbox.Discarded):
		return way{name: "failed", key: [2]string{"o.actualizado_en", "o.id"}, cast: [2]string{"timestamptz", "uuid"}, desc: !oldest,
			scope: "o.estado in ('fallido', 'descartado')"}
	case f.within(outbox.Pending, outbox.Processing):
		return way{name: "due", key: [2]string{"{{due}}", "o.id"}, cast: [2]string{"timestamptz", "uuid"},
			scope: "o.estado in ('pendiente', 'procesando') and {{due}} is not null"}
	case f.TenantID != "":
		return way{name: "tenant", key: [2]string{"o.clave_idempotencia", ""}, cast: [2]string{"text", ""}}
	}
	return way{name: "blocks", key: [2]string{"o.ctid", ""}, cast: [2]string{"tid", ""}, desc: true}
}

// Cursor is a place in a list: what comes after it is the next page. Empty means the beginning. Its text is opaque, and
// only good for the same filter.
type Cursor string

const cursorSeparator = "~"

func (w way) cursor(k1, k2 string) Cursor {
	return Cursor(w.name + cursorSeparator + k1 + cursorSeparator + k2)
}

// keys reads a cursor of this way.
func (w way) keys(c Cursor) (k1, k2 string, err error) {
	name, rest, _ := strings.Cut(string(c), cursorSeparator)
	k1, k2 = rest, ""
	if w.key[1] != "" {
		i := strings.LastIndex(rest, cursorSeparator)
		if i < 0 {
			return "", "", invalid("the place %q does not belong to this list: give the same filter, or none to begin anew", c)
		}
		k1, k2 = rest[:i], rest[i+1:]
	} else {
		k1 = strings.TrimSuffix(rest, cursorSeparator)
	}
	if name != w.name || k1 == "" {
		return "", "", invalid("the place %q does not belong to this list: give the same filter, or none to begin anew", c)
	}
	return k1, k2, nil
}

// after limits rows to those behind a place.
func (w way) after(c Cursor, in *where) error {
	if c == "" {
		return nil
	}
	k1, k2, err := w.keys(c)
	if err != nil {
		return err
	}
	compare := ">"
	if w.desc {
		compare = "<"
	}
	if w.key[1] == "" {
		in.add(fmt.Sprintf("%s %s ?::text::%s", w.key[0], compare, w.cast[0]), k1)
		return nil
	}
	in.add(fmt.Sprintf("(%s, %s) %s (?::text::%s, ?::text::%s)", w.key[0], w.key[1], compare, w.cast[0], w.cast[1]), k1, k2)
	return nil
}

func (w way) order() string {
	direction := ""
	if w.desc {
		direction = " desc"
	}
	order := w.key[0] + direction
	if w.key[1] != "" {
		order += ", " + w.key[1] + direction
	}
	return order
}
