package outbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

const (
	// maxData keeps the contents of an object or array within jsonb's own limit of 2^28 bytes: a list of small numbers takes
	// six times as many there as in JSON.
	maxData = 40_000_000
	// maxExponent keeps numbers within numeric, which is how jsonb stores them: 131072 digits before the point, 16383 after.
	maxExponent = 16000
	// maxDepth keeps the server's recursion within its stack: at the default max_stack_depth it ends before 14000.
	maxDepth = 5000
)

// encodeData gives data as JSON that jsonb can hold. The error never carries the data.
func encodeData(data any) (string, error) {
	if data == nil {
		return "{}", nil
	}
	b, err := json.Marshal(data)
	if err != nil {
		return "", invalid("Data", "cannot be marshalled as JSON (a channel, a function, a cycle, NaN, or invalid raw JSON)")
	}
	if len(b) > maxData {
		return "", invalid("Data", "must be at most 40000000 bytes of JSON, for jsonb to hold it")
	}
	if bound := whyNotJSONB(b); bound != "" {
		return "", invalid("Data", bound)
	}
	return string(b), nil
}

// whyNotJSONB says what in valid JSON a jsonb column would refuse, or nothing. Postgres would abort the caller's
// transaction for it; here it costs nothing.
func whyNotJSONB(b []byte) string {
	if !utf8.Valid(b) {
		return "must be valid UTF-8"
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return fmt.Sprintf("must be nested at most %d deep, for Postgres to parse it", maxDepth)
			}
		case c == ']' || c == '}':
			depth--
		case c == '"':
			n, bound := scanString(b[i+1:])
			if bound != "" {
				return bound
			}
			i += n
		case c == '-' || c >= '0' && c <= '9':
			n := bytes.IndexAny(b[i:], ",]} \t\r\n")
			if n < 0 {
				n = len(b) - i
			}
			if !numberFits(b[i : i+n]) {
				return "must not have numbers beyond 16000 digits, which numeric cannot hold"
			}
			i += n - 1
		}
	}
	return ""
}

// scanString reads a string's inside and gives its length with the closing quote.
func scanString(b []byte) (n int, bound string) {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, ""
		case '\\':
			i++
			if b[i] != 'u' {
				continue
			}
			unit := hex4(b[i+1:])
			i += 4
			switch {
			case unit == 0:
				return 0, `must not contain \u0000, which jsonb cannot hold`
			case unit >= 0xDC00 && unit < 0xE000:
				return 0, "must not contain half of a surrogate pair, which jsonb cannot hold"
			case unit >= 0xD800 && unit < 0xDC00:
				low := uint64(0)
				if i+2 < len(b) && b[i+1] == '\\' && b[i+2] == 'u' {
					low = hex4(b[i+3:])
				}
				if low < 0xDC00 || low >= 0xE000 {
					return 0, "must not contain half of a surrogate pair, which jsonb cannot hold"
				}
				i += 6
			}
		}
	}
	return len(b), ""
}

func hex4(b []byte) uint64 {
	if len(b) < 4 {
		return 0
	}
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return n
}

func numberFits(n []byte) bool {
	mantissa, exponent := n, 0
	if e := bytes.IndexAny(n, "eE"); e >= 0 {
		mantissa = n[:e]
		var err error
		if exponent, err = strconv.Atoi(string(n[e+1:])); err != nil {
			return false
		}
	}
	return len(mantissa)+max(exponent, -exponent) <= maxExponent
}
