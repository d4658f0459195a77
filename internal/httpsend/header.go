package httpsend

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// Printable tells whether s can be a header's value, or a part of it, and arrive as it is: at least one character, all of
// them printable ASCII, no space at either end. A key read from a file often ends in a line break; net/http reports that
// like a network error, which would be tried again for ever.
func Printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && strings.Trim(s, " ") == s
}

// ValidKey tells whether s can be an API key or a token: Printable, and no space within.
func ValidKey(s string) bool { return Printable(s) && !strings.Contains(s, " ") }

// FitKey returns an idempotency key that a destination takes: key itself if it is Printable and at most limit characters,
// otherwise its SHA-256 in hexadecimal, 64 characters. It never cuts: two messages with the same beginning would become
// one. An empty key stays empty.
func FitKey(key string, limit int) string {
	if key == "" || (len(key) <= limit && Printable(key)) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// sendable tells whether net/http would send these headers. It refuses others itself, but like a network error.
func sendable(header http.Header) bool {
	for name, values := range header {
		if name == "" || strings.ContainsFunc(name, notToken) {
			return false
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return false
			}
		}
	}
	return true
}

// notToken tells whether r may not be in a header's name (RFC 9110, 5.6.2).
func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}
