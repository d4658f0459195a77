// Package whatsappcloud is the part of WhatsApp's Cloud API that is the same with Meta and with whoever stands before it:
// the message that is sent, the answer, and the table of error codes.
package whatsappcloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// DefaultLanguage is the language of a template for which nobody says one.
const DefaultLanguage = "es_AR"

// Number is a number to send from, as both providers know it.
type Number struct {
	BaseURL       string // up to the version of the Graph API, without a slash at its end
	PhoneNumberID string
	Language      string // of templates that ask for none: "es", "es_AR"
	Faults        httpsend.Table
}

// Send sends t from n and returns WhatsApp's id of the message, empty if it was accepted and the id could not be read.
// The header carries the credentials. Errors are those of httpsend.Post, of n.Faults, and credenciales with code
// numero_emisor_invalido for a PhoneNumberID that is not made of digits, and plantilla with code idioma_invalido for a
// language that is not written as Meta writes it or nombres_invalidos for Names that are not those of its Parameters, all
// before any call.
func Send(ctx context.Context, client *http.Client, n Number, header http.Header, t transporte.Template) (string, error) {
	if !validID(n.PhoneNumberID) {
		return "", &transporte.Error{Category: outbox.Credentials, Code: "numero_emisor_invalido"}
	}
	language := cmp.Or(t.Language, n.Language)
	if !ValidLanguage(language) {
		return "", &transporte.Error{Category: outbox.TemplateFault, Code: "idioma_invalido"}
	}
	if !validNames(t) {
		return "", &transporte.Error{Category: outbox.TemplateFault, Code: "nombres_invalidos"}
	}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "outbox-relay")
	answer, err := httpsend.Post(ctx, client, n.BaseURL+"/"+n.PhoneNumberID+"/messages", header, message(language, t))
	if err != nil {
		return "", err
	}
	if !answer.OK() {
		return "", fault(n.Faults, answer, t.Attempt)
	}
	return acceptedID(answer.Body), nil
}

// Check finds what Send would refuse of a tenant's credentials, whose key is in the field name. What is empty is left out.
func Check(name, key, phoneNumberID, language string) error {
	switch {
	case key != "" && !httpsend.ValidKey(key):
		return &outbox.OptionError{Field: "Credentials." + name, Reason: "must be printable ASCII without a blank or a line break"}
	case phoneNumberID != "" && !validID(phoneNumberID):
		return &outbox.OptionError{Field: "Credentials.PhoneNumberID", Reason: "must be digits only, such as 106540352242922: it is Meta's id of the number, not the number"}
	case language != "" && !ValidLanguage(language):
		return &outbox.OptionError{Field: "Credentials.Language", Reason: "must be like es or es_AR"}
	}
	return nil
}

// validID: it becomes part of a path.
func validID(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// ValidLanguage tells whether s looks like one of the codes of
// https://developers.facebook.com/documentation/business-messaging/whatsapp/templates/supported-languages:
// "es", "es_AR", "fil". The usual mistake is a hyphen.
func ValidLanguage(s string) bool {
	language, region, regional := strings.Cut(s, "_")
	return between(language, "abcdefghijklmnopqrstuvwxyz") && (!regional || between(region, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
}

// between tells whether s is 2 or 3 of these letters.
func between(s, letters string) bool {
	return len(s) >= 2 && len(s) <= 3 && strings.Trim(s, letters) == ""
}

// ValidName tells whether s can be the name of a parameter: letters in lower case, digits and underscores, as WhatsApp
// Manager demands, and not digits only, which would be a position.
func ValidName(s string) bool {
	return strings.Trim(s, "0123456789") != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// validNames tells whether t has no names or one for each parameter, all different.
func validNames(t transporte.Template) bool {
	if len(t.Names) == 0 {
		return true
	}
	for i, name := range t.Names {
		if !ValidName(name) || slices.Contains(t.Names[:i], name) {
			return false
		}
	}
	return len(t.Names) == len(t.Parameters)
}

type (
	templateMessage struct {
		Product       string   `json:"messaging_product"`
		RecipientType string   `json:"recipient_type"`
		To            string   `json:"to"`
		Type          string   `json:"type"`
		Template      template `json:"template"`
		// CallbackData comes back in every event about the message: the only link to the row, as there is no idempotency key.
		CallbackData string `json:"biz_opaque_callback_data,omitempty"`
	}
	template struct {
		Name       string      `json:"name"`
		Language   language    `json:"language"`
		Components []component `json:"components,omitempty"`
	}
	language struct {
		Code string `json:"code"`
	}
	component struct {
		Type       string      `json:"type"`
		Parameters []parameter `json:"parameters"`
	}
	parameter struct {
		Type string `json:"type"`
		Name string `json:"parameter_name,omitempty"`
		Text string `json:"text"`
	}
)

// message is the body of the request. Parameters are positional unless t has names, which are valid.
func message(lang string, t transporte.Template) []byte {
	m := templateMessage{
		Product: "whatsapp", RecipientType: "individual", To: t.To, Type: "template",
		Template:     template{Name: t.Name, Language: language{lang}},
		CallbackData: t.RowID,
	}
	if len(t.Parameters) > 0 {
		body := component{Type: "body"}
		for i, text := range t.Parameters {
			p := parameter{Type: "text", Text: text}
			if len(t.Names) > 0 {
				p.Name = t.Names[i]
			}
			body.Parameters = append(body.Parameters, p)
		}
		m.Template.Components = []component{body}
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(m) // texts only: it cannot fail
	return bytes.TrimSuffix(encoded.Bytes(), []byte("\n"))
}
