package smtp

import (
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

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

// ScramProven tells whether a server that says these challenges is taken to know the password. In a challenge NONCE stands
// for the client's nonce.
func ScramProven(password string, challenges ...string) bool {
	s, nonce := &scram{Auth: smtp.ScramSHA256Auth("club", password)}, ""
	for _, challenge := range challenges {
		response, err := s.Next([]byte(strings.ReplaceAll(challenge, "NONCE", nonce)), true)
		if err != nil {
			return false
		}
		if _, after, ok := strings.Cut(string(response), ",r="); ok {
			nonce = after
		}
	}
	_, err := s.Next(nil, false)
	return err == nil
}
