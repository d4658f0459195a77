package whatsappcloud

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// metaBody is Meta's answer with this code, none if it is empty, and text where it stands in earnest.
func metaBody(code, text string) string {
	quoted, _ := json.Marshal(text)
	if code == "" {
		return fmt.Sprintf(`{"error":{"message":%s,"type":"OAuthException","fbtrace_id":"A1"}}`, quoted)
	}
	code, sub, _ := strings.Cut(code, "/")
	if sub != "" {
		sub = `"error_subcode":` + sub + `,`
	}
	return fmt.Sprintf(`{"error":{"message":"(#%s)","type":"OAuthException","code":%s,%s`+
		`"error_data":{"messaging_product":"whatsapp","details":%s},"fbtrace_id":"A1"}}`, code, code, sub, quoted)
}

func TestEveryRowOfTheTable(t *testing.T) {
	t.Parallel()
	sendertest.Faults(t, Faults, "999999", metaBody, send)
}

// Bodies as they come; the table's rows alone would not tell that every shape of them is read.
func TestAnswersAsMetaAndGatewaysGiveThem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status         int
		body           string
		category, code string
	}{
		// Code 0 is a code. A body without one must not be read as it.
		{401, `{"error":{"message":"AuthException","type":"OAuthException","code":0,"fbtrace_id":"A"}}`, outbox.Credentials, "0"},
		{500, `{"error":{"message":"An unknown error","type":"OAuthException"}}`, outbox.Network, "http_500"},
		{500, `{"error":{"code":null}}`, outbox.Network, "http_500"},
		{500, `{}`, outbox.Network, "http_500"},
		{400, `{"error":{"message":"(#131056)","code":131056}}`, outbox.Limit, "131056"},
		{429, `{"error":{"message":"(#131056)","code":"131056"}}`, outbox.Limit, "131056"},
		{400, `{"error":{"message":5,"code":131026,"error_data":"ana"}}`, outbox.Number, "131026"},
		{400, `{"error":{"message":"Unsupported post request. Object with ID '1' does not exist","code":100,"error_subcode":33}}`, outbox.Credentials, "100/33"},
		{400, `{"error":{"code":100,"error_data":{"details":"Recipient is not a valid number"}}}`, outbox.Number, "100"},
		{400, `{"error":{"message":"(#131009) Parameter template is not valid","code":131009}}`, outbox.TemplateFault, "131009"},
		{400, `{"error":{"message":"(#131009) Parameter value is not valid","code":131009}}`, outbox.Rejected, "131009"},
		{503, `{"error":{"code":135000}}`, outbox.Network, "135000"},
		{400, `{"error":{"code":135000}}`, outbox.Rejected, "135000"},
		{400, `{"error":{"message":"new in 2027","code":139999}}`, "http_400", "139999"},
		{429, `{"error":{"message":"new in 2027","code":139999}}`, outbox.Limit, "139999"},
		{400, `{"error":{"code":-1}}`, outbox.Rejected, "http_400"},
		{400, `{"error":{"code":5491145678901}}`, "http_400", "http_400"},
		{429, `{"error":"Rate limit exceeded","message":"You have exceeded the rate limit."}`, outbox.Limit, "http_429"},
		{422, `{"error":"Outside the 24-hour window"}`, outbox.Window, "http_422"},
		{422, `{"error":"x","message":"The phone number is not valid"}`, outbox.Number, "http_422"},
		{400, `{"error":"no such template"}`, outbox.TemplateFault, "http_400"},
		{400, `{"error":{"message":"something else"}}`, outbox.Rejected, "http_400"},
		{404, `<html>`, outbox.Credentials, "http_404"},
		{302, ``, "http_302", "http_302"},
	}
	for _, test := range tests {
		s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		_, err := send(t.Context(), nil, s.URL)
		failed := sendertest.Failure(t, err)
		if failed.Category != test.category || failed.Code != test.code {
			t.Errorf("%d %s: got %s/%s, want %s/%s", test.status, test.body, failed.Category, failed.Code, test.category, test.code)
		}
	}
}

func TestALimitWaitsForTheAccessThatMetaEstimates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code, usage string
		want        time.Duration
	}{
		{"130429", `{"1":[{"type":"whatsapp","estimated_time_to_regain_access":5},{"estimated_time_to_regain_access":2}],"2":[]}`, 5 * time.Minute},
		{"131048", `{"1":[{"estimated_time_to_regain_access":5}]}`, time.Hour}, // the row asks for more
		{"130429", `{"1":[{"estimated_time_to_regain_access":1e9}]}`, 24 * time.Hour},
		{"130429", `{"1":[{"estimated_time_to_regain_access":-5}]}`, 0},
		{"130429", `{"1":[{"estimated_time_to_regain_access":"5"}]}`, 0},
		{"130429", `<html>`, 0},
		{"130429", ``, 0},
		{"131026", `{"1":[{"estimated_time_to_regain_access":5}]}`, 0}, // not about speed
	}
	for _, test := range tests {
		s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Business-Use-Case-Usage", test.usage)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, metaBody(test.code, ""))
		})
		_, err := send(t.Context(), nil, s.URL)
		if failed := sendertest.Failure(t, err); failed.RetryAfter != test.want {
			t.Errorf("%s %s: got %v, want %v", test.code, test.usage, failed.RetryAfter, test.want)
		}
	}
}

func TestTheWaitForAPairOfNumbersGrowsWithTheAttempts(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, metaBody("131056", ""))
	})
	for attempt, want := range map[int]time.Duration{
		0: 6 * time.Second, 1: 6 * time.Second, 2: 24 * time.Second, 3: 96 * time.Second, 7: 24576 * time.Second, 8: 24 * time.Hour, 1 << 30: 24 * time.Hour,
	} {
		m := appointment()
		m.Attempt = attempt
		_, err := Send(t.Context(), httpsend.Client(nil), Number{BaseURL: s.URL, PhoneNumberID: "1", Language: "es", Faults: Faults}, http.Header{}, m)
		sendertest.Want(t, err, transporte.Error{Category: outbox.Limit, Code: "131056", RetryAfter: want})
	}
}

func TestTheOperatorsPageHasEveryCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range Faults {
		for code := range strings.FieldsSeq(row.Code) {
			if code != httpsend.None && !strings.Contains(string(page), "`"+code+"`") {
				t.Errorf("docs/providers.md says nothing of %s", code)
			}
		}
	}
}

func FuzzAnAcceptedMessageHasAnIDOrNone(f *testing.F) {
	f.Add([]byte(accepted))
	f.Add([]byte(`{"messages":[{"id":"a\u0000"}]}`))
	f.Add([]byte(`{"messages":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if id := acceptedID(body); id != "" && (len(id) > 256 || !httpsend.Printable(id)) {
			t.Errorf("got %q", id)
		}
	})
}

func FuzzAFaultSaysNothingThatTheProviderWrote(f *testing.F) {
	f.Add(400, []byte(metaBody("131056", "Ana")), `{"1":[{"estimated_time_to_regain_access":5}]}`)
	f.Add(422, []byte(`{"error":"Ana","message":["b"]}`), ``)
	f.Add(500, []byte(`{"error":{"code":"5491145678901","error_subcode":{}}}`), `[]`)
	f.Fuzz(func(t *testing.T, status int, body []byte, usage string) {
		answer := httpsend.Answer{Status: status, Header: http.Header{"X-Business-Use-Case-Usage": {usage}}, Body: body}
		failed := fault(Faults, answer, status)
		if failed.Category == "" || strings.Trim(strings.TrimPrefix(failed.Code, "http_"), "0123456789/-") != "" ||
			len(failed.Code) > 25 || failed.RetryAfter < 0 || failed.RetryAfter > 24*time.Hour {
			t.Errorf("%d %q: got %+v", status, body, failed)
		}
	})
}
