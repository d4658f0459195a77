package httpsend

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

var sample = Table{
	{Status: "400 401", Code: "validation_error", Mentions: "api key", Category: outbox.Credentials},
	{Code: "validation_error invalid_parameter", Category: outbox.Rejected},
	{Code: "132xxx max_exceeded", Category: outbox.TemplateFault},
	{Status: "429", Category: outbox.Limit, Wait: time.Minute},
	{Status: "4xx", Code: None, Category: outbox.Number},
	{Status: "503", Category: outbox.Network, Uncertain: true},
}

func TestTheFirstRowThatFitsDecides(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status     int
		code, text string
		want       transporte.Error
	}{
		{400, "validation_error", "Your API key, Ana", transporte.Error{Category: "credenciales", Code: "validation_error"}},
		{401, "validation_error", "key of the API", transporte.Error{Category: "credenciales", Code: "validation_error"}},
		{400, "validation_error", "Your key, Ana", transporte.Error{Category: "rechazado", Code: "validation_error"}},
		{422, "validation_error", "Your API key", transporte.Error{Category: "rechazado", Code: "validation_error"}},
		{500, "invalid_parameter", "", transporte.Error{Category: "rechazado", Code: "invalid_parameter"}},
		{200, "132123", "", transporte.Error{Category: "plantilla", Code: "132123"}},
		{429, "max_exceeded", "", transporte.Error{Category: "plantilla", Code: "max_exceeded"}},
		{429, "ma1_e1ceeded", "", transporte.Error{Category: "limite", Code: "http_429", RetryAfter: time.Minute}},
		{429, "13212", "", transporte.Error{Category: "limite", Code: "13212", RetryAfter: time.Minute}},
		{429, "13212y", "", transporte.Error{Category: "limite", Code: "http_429", RetryAfter: time.Minute}},
		{404, "", "", transporte.Error{Category: "numero", Code: "http_404"}},
		{404, "132", "", transporte.Error{Category: "http_404", Code: "132"}},
		{302, "", "", transporte.Error{Category: "http_302", Code: "http_302"}},
		{503, "", "", transporte.Error{Category: "red", Code: "http_503", Uncertain: true}},
		{500, "", "", transporte.Error{Category: "http_500", Code: "http_500", Uncertain: true}},
	}
	for _, test := range tests {
		if got := sample.Error(Answer{Status: test.status}, test.code, test.text); *got != test.want {
			t.Errorf("%d %s %q: got %+v, want %+v", test.status, test.code, test.text, *got, test.want)
		}
	}
}

func TestAnUnknownAnswerIsTransient(t *testing.T) {
	t.Parallel()
	for status := 300; status < 600; status++ {
		got := Table{}.Error(Answer{Status: status}, "something_new", "")
		if outbox.Classify(got.Category) != outbox.Transient || got.Code != "something_new" {
			t.Errorf("status %d: got %+v, want it transient", status, got)
		}
	}
}

func TestTheLongerWaitCounts(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]time.Duration{"30": time.Minute, "90": 90 * time.Second} {
		answer := Answer{Status: 429, Header: http.Header{"Retry-After": {asked}}}
		if got := sample.Error(answer, "", ""); got.RetryAfter != want {
			t.Errorf("asked for %s s: got %v, want %v", asked, got.RetryAfter, want)
		}
	}
}

func TestOnlyWhatAMachineWroteIsACode(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"rate_limit_exceeded": true, "not_found": true, "0": true, "131056": true, "100/33": true, "2494010": true,
		"": false, "Ana Pérez": false, "ana@club.example": false, "5491122334455": false, "+549112": false,
		"100/": false, "/33": false, "1/2/3": false, "a b": false, "A": false, "12.5": false,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
	}
	for code, want := range tests {
		got := Table{}.Error(Answer{Status: 400}, code, "").Code
		if (got == code) != want || !want && got != "http_400" {
			t.Errorf("%q: got %q, want it kept: %v", code, got, want)
		}
	}
}
