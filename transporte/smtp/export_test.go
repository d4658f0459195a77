package smtp

import "time"

// Row is a row of the table of replies, for the tests.
type Row struct {
	Phases, Codes, Enhanced, Category, Source, Example string
	Wait                                               time.Duration
}

// Replies returns the table.
func Replies() []Row {
	var rows []Row
	for _, r := range replies {
		rows = append(rows, Row{r.phases, r.codes, r.enhanced, r.category, r.source, r.example, r.wait})
	}
	return rows
}

// FirstRow returns the number of the row that decides about a reply.
func FirstRow(step string, code int, text string) int {
	for i, r := range replies {
		if r.fits(phase(step), code, enhancedCode(code, text)) {
			return i
		}
	}
	return -1
}

var QueueID = queueID
