package resend

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func sendOne(ctx context.Context, client *http.Client, baseURL string) (string, error) {
	p, err := New("re_test", Options{BaseURL: baseURL, Client: client})
	if err != nil {
		return "", err
	}
	return p.Send(ctx, transporte.Email{From: "a@club.example", To: "b@club.example", Subject: "x", Text: "y"})
}

func TestEveryRowOfTheTable(t *testing.T) {
	t.Parallel()
	body := func(code, text string) string {
		said, _ := json.Marshal(map[string]string{"name": code, "message": text})
		return string(said)
	}
	sendertest.Faults(t, faults, "something_new", body, sendOne)
}

// Bodies as Resend sends them; the table's rows alone would not tell that they are read.
func TestAnswersAsResendGivesThem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status         int
		body           string
		category, code string
	}{
		{401, `{"statusCode":401,"name":"validation_error","message":"API key is invalid"}`, outbox.Credentials, "validation_error"},
		{400, `{"statusCode":400,"name":"validation_error","message":"API key is invalid"}`, outbox.Credentials, "validation_error"},
		{403, `{"statusCode":403,"message":"The club.example domain is not verified.","name":"validation_error"}`, outbox.Credentials, "validation_error"},
		{422, `{"statusCode":422,"name":"missing_required_field","message":"Missing ` + "`to`" + ` field."}`, outbox.Rejected, "missing_required_field"},
		{409, `{"statusCode":409,"name":"invalid_idempotent_request","message":"Same key"}`, outbox.IdempotencyConflict, "invalid_idempotent_request"},
		{429, `{"statusCode":429,"name":"monthly_quota_exceeded","message":"Upgrade"}`, outbox.Limit, "monthly_quota_exceeded"},
		{422, `{"statusCode":422,"name":"Ana <ana@club.example>","message":"x"}`, outbox.Rejected, "http_422"},
		{429, `{"statusCode":"429","name":"daily_quota_exceeded","message":{"ana":1}}`, outbox.Limit, "daily_quota_exceeded"},
		{502, `<html><head><title>502 Bad Gateway</title></head></html>`, outbox.Network, "http_502"},
		{520, ``, outbox.Network, "http_520"},
		{404, `{"statusCode":404,"name":"not_found","message":"The requested endpoint does not exist"}`, outbox.Rejected, "not_found"},
		{404, `<html>no such page</html>`, outbox.Rejected, "http_404"},
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

func TestTheOperatorsPageHasEveryName(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range faults {
		for name := range strings.FieldsSeq(row.Code) {
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/providers.md says nothing of %s", name)
			}
		}
	}
}

func FuzzAnAcceptedEmailHasAnIDOrNone(f *testing.F) {
	f.Add([]byte(`{"id":"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}`))
	f.Add([]byte(`{"id":"a\u0000"}`))
	f.Add([]byte(`{"ID":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if id := acceptedID(body); id != "" && (len(id) > 256 || !httpsend.Printable(id)) {
			t.Errorf("got %q", id)
		}
	})
}

func FuzzAFaultSaysNothingThatResendWrote(f *testing.F) {
	f.Add(422, []byte(`{"statusCode":422,"name":"missing_required_field","message":"Missing"}`))
	f.Add(400, []byte(`{"name":"ana@club.example","message":["api key"]}`))
	f.Add(500, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		failed := fault(httpsend.Answer{Status: status, Body: body})
		if failed.Category == "" || strings.Trim(failed.Code, "abcdefghijklmnopqrstuvwxyz_0123456789/-") != "" {
			t.Errorf("%d %q: got %+v", status, body, failed)
		}
	})
}
