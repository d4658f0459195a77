package whatsappcloud

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// acceptedID reads {"messages":[{"id":"wamid...."}]}. Whatever else a 200 says, the message has left.
func acceptedID(body []byte) string {
	var accepted struct{ Messages []struct{ ID string } }
	if json.Unmarshal(body, &accepted) != nil || len(accepted.Messages) == 0 {
		return ""
	}
	return httpsend.ID(accepted.Messages[0].ID)
}

// fault is an answer that is no success, to the attempt of this number.
func fault(faults httpsend.Table, answer httpsend.Answer, attempt int) *transporte.Error {
	code, text := read(answer.Body)
	failed := faults.Error(answer, code, text)
	if failed.Category == outbox.Limit {
		failed.RetryAfter = max(failed.RetryAfter, regainAccess(answer.Header.Get("X-Business-Use-Case-Usage")))
	}
	if failed.Code == pairLimit {
		failed.RetryAfter = max(failed.RetryAfter, pairWait(attempt))
	}
	return failed
}

// pairWait is four times as long after each attempt; the table has the first.
func pairWait(attempt int) time.Duration {
	wait := firstPairWait
	for n := 1; n < attempt && wait < day; n++ {
		wait *= 4
	}
	return min(wait, day)
}

const day = 24 * time.Hour // no more is honoured

// read finds code and text in an error's body. It has two shapes: Meta's object under "error", and a gateway's, where
// "error" is a text with perhaps a "message" beside it; from an edge it may be HTML. Each field is decoded on its own, so
// that one of an unexpected type does not hide the others: a body without a code must not look like code 0, which is one.
func read(body []byte) (code, text string) {
	outer := object(body)
	text = str(outer["error"]) + " " + str(outer["message"])
	inner := object(outer["error"])
	code = number(inner["code"])
	if code == "100" && number(inner["error_subcode"]) == "33" { // the number that we send from does not exist
		code = "100/33"
	}
	return code, text + " " + str(inner["message"]) + " " + str(object(inner["error_data"])["details"])
}

func object(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

func str(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// number reads 131056 and, as gateways write it, "131056". Anything else is "".
func number(raw json.RawMessage) string {
	digits := string(raw)
	if s := str(raw); s != "" {
		digits = s
	}
	if strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits
}

// regainAccess reads the longest estimated_time_to_regain_access, in minutes, of a header like
// {"<account>":[{"type":"whatsapp","call_count":100,"estimated_time_to_regain_access":5}]}:
// https://developers.facebook.com/docs/graph-api/overview/rate-limiting.
func regainAccess(header string) time.Duration {
	var accounts map[string][]struct {
		Minutes float64 `json:"estimated_time_to_regain_access"`
	}
	if json.Unmarshal([]byte(header), &accounts) != nil {
		return 0
	}
	var longest float64
	for _, usages := range accounts {
		for _, usage := range usages {
			longest = max(longest, usage.Minutes)
		}
	}
	return time.Duration(min(longest, day.Minutes()) * float64(time.Minute))
}
