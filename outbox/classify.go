package outbox

import (
	"slices"
	"strings"
)

// Class says whether a failed send may succeed later.
type Class string

const (
	Transient Class = "transient" // try again later
	Permanent Class = "permanent" // the same message would fail the same way: discard it
)

// Categories of failures: the values of the column ultimo_error_categoria.
const (
	Network             = "red"                    // transient: no answer, or an answer that says nothing about the message
	Limit               = "limite"                 // transient: the destination asks to slow down
	IdempotencyConflict = "conflicto_idempotencia" // transient: the key is in use with another body, or just now
	Credentials         = "credenciales"           // permanent: missing or refused
	Rejected            = "rechazado"              // permanent: the destination refuses this message
	Billing             = "facturacion"            // permanent: the account is not in order
	TemplateFault       = "plantilla"              // permanent: the template is unknown or does not render
	Number              = "numero"                 // permanent: the recipient does not exist on this channel
	Window              = "ventana"                // permanent: outside the channel's service window
)

// TransientCategories lists the known transient categories. Unknown ones are transient too.
func TransientCategories() []string { return []string{Network, Limit, IdempotencyConflict} }

// PermanentCategories lists the categories that Classify calls permanent.
func PermanentCategories() []string {
	return []string{Credentials, Rejected, Billing, TemplateFault, Number, Window}
}

// Classify tells the class of a category. One that it does not know is transient: sending once too often is visible,
// discarding a message that could have been sent is not.
func Classify(category string) Class {
	if slices.Contains(PermanentCategories(), category) {
		return Permanent
	}
	return Transient
}

// Known tells whether a category is one of the above. A sender may invent others.
func Known(category string) bool {
	return slices.Contains(TransientCategories(), category) || slices.Contains(PermanentCategories(), category)
}

// maxCode is the length of the columns for category and code that the table's other writers keep to, in characters.
const maxCode = 64

// ShortCode makes s fit to be shown and stored as a category or code: letters, digits, spaces and . : _ - / stay, anything
// else becomes _, and it is cut at 64 characters. A sender that puts a provider's text there by mistake leaks little of it.
func ShortCode(s string) string {
	short := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" .:_-/", r):
			return r
		}
		return '_'
	}, s)
	return short[:min(len(short), maxCode)]
}
