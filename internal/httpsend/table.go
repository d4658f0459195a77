package httpsend

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/transporte"
)

// None is a Row's Code that fits an answer without a code.
const None = "-"

// Row says what an answer means. It fits an answer if each of Status, Code and Mentions fits that is not empty.
type Row struct {
	// Status is the HTTP status, or several separated by spaces. In numbers "x" is any digit: "401 403", "4xx".
	Status string
	// Code is the machine's name or number in the answer, written like Status: "rate_limit_exceeded", "0 190", "132xxx".
	Code string
	// Mentions are words, in lower case, that the answer's text must all contain somewhere, in any case. Texts change
	// without notice, so such a row stands above one that does without.
	Mentions string

	// Category is what becomes of the message: see outbox.Classify.
	Category string
	// Wait is the least wait before the next attempt. The answer may ask for more.
	Wait time.Duration
	// Uncertain says that the message may have left all the same.
	Uncertain bool
}

// Table is what a destination's page says about failures. The first row that fits decides, so rows with a code stand above
// those with a status only.
type Table []Row

// Error returns what answer means, read as code (its machine's name or number, may be empty) and text (what people read,
// may be empty: it is looked at and not kept). No row that fits means a transient failure of category http_<status>.
//
// The error's Code is code if that looks like a machine's, so that no provider's text gets through, and http_<status>
// otherwise. Its RetryAfter is the longest of the row's Wait and the answer's RetryAfter.
func (t Table) Error(answer Answer, code, text string) *transporte.Error {
	status := "http_" + strconv.Itoa(answer.Status)
	row := t.row(answer.Status, code, text)
	if row.Category == "" {
		row.Category = status
	}
	if !machineMade(code) {
		code = status
	}
	return &transporte.Error{
		Category: row.Category, Code: code,
		RetryAfter: max(row.Wait, answer.RetryAfter()), Uncertain: row.Uncertain,
	}
}

func (t Table) row(status int, code, text string) Row {
	text = strings.ToLower(text)
	for _, row := range t {
		if fits(row.Status, strconv.Itoa(status)) && fits(row.Code, code) && mentions(text, row.Mentions) {
			return row
		}
	}
	return Row{Uncertain: status >= http.StatusInternalServerError}
}

// fits tells whether s is one of the patterns, any s if there is none.
func fits(patterns, s string) bool {
	if patterns == "" || patterns == None && s == "" {
		return true
	}
	for pattern := range strings.FieldsSeq(patterns) {
		if fitsOne(pattern, s) {
			return true
		}
	}
	return false
}

func fitsOne(pattern, s string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i := range len(s) {
		anyDigit := pattern[i] == 'x' && isDigit(pattern[0]) && isDigit(s[i])
		if s[i] != pattern[i] && !anyDigit {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func mentions(text, words string) bool {
	for word := range strings.FieldsSeq(words) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// machineMade tells whether code is a number of at most 7 digits (a telephone number has more), two of them with a slash
// between, or a name of at most 64 letters in lower case and underscores.
func machineMade(code string) bool {
	if strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") == "" {
		return code != "" && len(code) <= 64
	}
	number, sub, two := strings.Cut(code, "/")
	return shortNumber(number) && (!two || shortNumber(sub))
}

func shortNumber(s string) bool {
	return s != "" && len(s) <= 7 && strings.Trim(s, "0123456789") == ""
}
