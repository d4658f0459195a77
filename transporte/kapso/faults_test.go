package kapso

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func sendOne(ctx context.Context, client *http.Client, baseURL string) (string, error) {
	p, err := New(Options{BaseURL: baseURL, Client: client})
	if err != nil {
		return "", err
	}
	c := Credentials{APIKey: "key", PhoneNumberID: "106540352242922"}
	return p.Send(ctx, c, transporte.Template{To: "5491145678901", Name: "turno"})
}

// kapsoBody is Meta's answer, passed on, if there is a code, and Kapso's own otherwise.
func kapsoBody(code, text string) string {
	quoted, _ := json.Marshal(text)
	if code == "" {
		return fmt.Sprintf(`{"error":"Ana","message":%s}`, quoted)
	}
	code, sub, _ := strings.Cut(code, "/")
	if sub == "" {
		sub = "null"
	}
	return fmt.Sprintf(`{"error":{"message":%s,"code":%s,"error_subcode":%s}}`, quoted, code, sub)
}

func TestEveryRowOfTheTable(t *testing.T) {
	t.Parallel()
	sendertest.Faults(t, faults, "999999", kapsoBody, sendOne)
}

func TestAnswersAsKapsoGivesThem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status         int
		body           string
		category, code string
	}{
		{402, `{"error":"Sends are paused"}`, outbox.Billing, "http_402"},
		{400, `{"error":"Meta blocked this template because your WhatsApp Business account is not payment eligible"}`, outbox.Billing, "http_400"},
		{422, `{"error":"WhatsApp Business Account is not eligible to send template messages"}`, outbox.Billing, "http_422"},
		{403, `{"error":"Payment method required"}`, outbox.Billing, "http_403"},
		{400, `{"error":{"message":"Business eligibility payment issue","code":131042}}`, outbox.Billing, "131042"},
		{403, `{"error":"Forbidden"}`, outbox.Credentials, "http_403"},
		{401, `{"error":"Unauthorized"}`, outbox.Credentials, "http_401"},
		{429, `{"error":"Rate limit exceeded","message":"You have exceeded the rate limit. Please try again later."}`, outbox.Limit, "http_429"},
		{422, `{"error":"Cannot send a text outside the 24-hour window"}`, outbox.Window, "http_422"},
		{422, `{"error":"Unprocessable"}`, outbox.Rejected, "http_422"},
		{400, `{"error":"Phone number is required"}`, outbox.Number, "http_400"},
		{503, `{"error":"Service unavailable"}`, outbox.Network, "http_503"},
	}
	for _, test := range tests {
		s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		_, err := sendOne(t.Context(), nil, s.URL)
		failed := sendertest.Failure(t, err)
		if failed.Category != test.category || failed.Code != test.code {
			t.Errorf("%d %s: got %s/%s, want %s/%s", test.status, test.body, failed.Category, failed.Code, test.category, test.code)
		}
	}
}
