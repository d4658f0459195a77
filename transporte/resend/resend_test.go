package resend_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/resend"
)

func TestMain(m *testing.M) { sendertest.Main(m) }

func reminder() transporte.Email {
	return transporte.Email{
		From: "Club <avisos@club.example>", To: "Ana <ana@club.example>", Subject: "Tu turno",
		HTML: "<p>Mañana & pasado</p>", Text: "Mañana", RowID: "row-1", IdempotencyKey: "t1:turno-7",
	}
}

func send(ctx context.Context, client *http.Client, baseURL string) (string, error) {
	p, err := resend.New("re_test", resend.Options{BaseURL: baseURL, Client: client})
	if err != nil {
		return "", err
	}
	return p.Send(ctx, reminder())
}

func TestWithoutAnAnswer(t *testing.T) { t.Parallel(); sendertest.Outages(t, send) }

func TestAnOddAnswer(t *testing.T) { t.Parallel(); sendertest.OddAnswers(t, send) }

func TestResendAsksToWait(t *testing.T) { t.Parallel(); sendertest.Waits(t, send) }

func TestTenThousandEmailsOver64Connections(t *testing.T) {
	t.Parallel()
	answer := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"id":"`+r.Header.Get("Idempotency-Key")+`"}`)
	}
	sendertest.Load(t, answer, func(client *http.Client, baseURL string) func(context.Context, string) (string, error) {
		p, err := resend.New("re_test", resend.Options{BaseURL: baseURL, Client: client})
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, id string) (string, error) {
			e := reminder()
			e.IdempotencyKey = id
			return p.Send(ctx, e)
		}
	})
}

// request is what a stub got.
type request struct {
	path, body string
	header     http.Header
}

// sent sends e and returns the request.
func sent(t *testing.T, opts resend.Options, e transporte.Email) request {
	t.Helper()
	var got request
	s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = request{r.Method + " " + r.URL.Path, string(body), r.Header}
		_, _ = io.WriteString(w, `{"id":"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}`)
	})
	opts.BaseURL = s.URL
	p, err := resend.New("re_test", opts)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p.Send(t.Context(), e)
	if id != "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794" || err != nil {
		t.Fatalf("got %q, %v, want the provider's id", id, err)
	}
	return got
}

func TestTheRequestIsTheOneThatResendDocuments(t *testing.T) {
	t.Parallel()
	got := sent(t, resend.Options{ReplyTo: "secretaria@club.example"}, reminder())
	want := request{
		path: "POST /emails",
		body: `{"from":"Club <avisos@club.example>","to":["Ana <ana@club.example>"],"subject":"Tu turno",` +
			`"html":"<p>Mañana & pasado</p>","text":"Mañana","reply_to":"secretaria@club.example"}`,
		header: http.Header{
			"Authorization":   {"Bearer re_test"},
			"Content-Type":    {"application/json"},
			"Content-Length":  {strconv.Itoa(len(got.body))},
			"Idempotency-Key": {"t1:turno-7"},
			"User-Agent":      {"outbox-relay"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWhatIsEmptyIsLeftOut(t *testing.T) {
	t.Parallel()
	got := sent(t, resend.Options{}, transporte.Email{From: "a@club.example", To: "b@club.example", Subject: "x", Text: "y"})
	if want := `{"from":"a@club.example","to":["b@club.example"],"subject":"x","text":"y"}`; got.body != want {
		t.Errorf("got %s, want %s", got.body, want)
	}
	if _, there := got.header["Idempotency-Key"]; there {
		t.Error("got an Idempotency-Key without a key")
	}
}

// Resend refuses a known key with another body.
func TestTheSameEmailIsTheSameRequestOnEveryAttempt(t *testing.T) {
	t.Parallel()
	first, second := sent(t, resend.Options{}, reminder()), sent(t, resend.Options{}, reminder())
	if !reflect.DeepEqual(first, second) {
		t.Errorf("got  %+v\nthen %+v", first, second)
	}
}

func TestAKeyThatResendWouldNotTakeGoesOutAsItsHash(t *testing.T) {
	t.Parallel()
	fits := "t1:" + strings.Repeat("a", 253)
	tests := map[string]string{
		fits:             fits,
		fits + "a":       "99584b1c693db360377a16c7a4bf12eefebc53d2d8664e52229432648ff69df9",
		"t1:ñandú":       "8ba6e9c4c1e58154d32c043bc8e27ced3d4b427b3fa92e9af0dcbaca4bda993a",
		"a\nb":           "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78",
		"a\r\nX-Evil: 1": "55be3e777ced543fcdac735d5a9d426c79528deb22adfc1f6820a6d67906b68e",
	}
	for key, want := range tests {
		e := reminder()
		e.IdempotencyKey = key
		got := sent(t, resend.Options{}, e).header.Get("Idempotency-Key")
		if got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	tests := []struct {
		apiKey string
		opts   resend.Options
		names  string
	}{
		{"", resend.Options{}, "apiKey"},
		{"re_secret\n", resend.Options{}, "apiKey"},
		{"ré_secret", resend.Options{}, "apiKey"},
		{"re_secret", resend.Options{BaseURL: "api.resend.com"}, "BaseURL"},
		{"re_secret", resend.Options{ReplyTo: "the club"}, "ReplyTo"},
	}
	for _, test := range tests {
		p, err := resend.New(test.apiKey, test.opts)
		if p != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), test.names) ||
			!strings.Contains(err.Error(), "resend.New") || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, %v, want ErrInvalidOptions that names %s and not the key", p, err, test.names)
		}
	}
}

func TestTheZeroOptionsSendToResend(t *testing.T) {
	t.Parallel()
	var url string
	p, err := resend.New("re_test", resend.Options{Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		url = r.URL.String()
		return nil, errors.New("no")
	})}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Send(t.Context(), reminder())
	if url != "https://api.resend.com/emails" {
		t.Errorf("got %s", url)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
