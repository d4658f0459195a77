package webhook

import (
	"net/http"
	"strings"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
)

// addTrace hands on the W3C trace context of a message, and none of its other headers: they are notes of our own. Values
// that are not well-formed are dropped (https://www.w3.org/TR/trace-context/, 3.2 and 3.3).
func addTrace(to http.Header, from map[string]string) {
	parent, state := from["traceparent"], from["tracestate"]
	if !validParent(parent) {
		return
	}
	to.Set("Traceparent", parent)
	if httpsend.Printable(state) && len(state) <= 512 {
		to.Set("Tracestate", state)
	}
}

// validParent tells whether s is version 00 of a traceparent: 00-<32 hex>-<16 hex>-<2 hex>, no id all zeros.
func validParent(s string) bool {
	parts := strings.Split(s, "-")
	return len(parts) == 4 && parts[0] == "00" &&
		isHex(parts[1], 32) && strings.Trim(parts[1], "0") != "" &&
		isHex(parts[2], 16) && strings.Trim(parts[2], "0") != "" &&
		isHex(parts[3], 2)
}

func isHex(s string, length int) bool {
	return len(s) == length && strings.Trim(s, "0123456789abcdef") == ""
}
