package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

// send sends one webhook with the client given. It returns an id only if that is not the message's own.
func send(ctx context.Context, client *http.Client, url string) (string, error) {
	s, err := webhook.New(signedBy(secret("a", 24)), webhook.Options{Client: client, Development: true})
	if err != nil {
		return "", err
	}
	id, err := s.Send(ctx, order(url))
	if err == nil && id != rowID {
		return id, errors.New("not the message's id")
	}
	return strings.TrimPrefix(id, rowID), err
}

func TestWithoutAnAnswer(t *testing.T) { t.Parallel(); sendertest.Outages(t, send) }

func TestAnOddAnswer(t *testing.T) { t.Parallel(); sendertest.OddAnswers(t, send) }

func TestTheEndpointAsksToWait(t *testing.T) { t.Parallel(); sendertest.Waits(t, send) }

func TestEveryRowOfTheTable(t *testing.T) {
	t.Parallel()
	for _, row := range webhook.Answers {
		if row.Code != "" || row.Mentions != "" {
			t.Errorf("row %+v: a receiver has no code and no text of its own", row)
		}
	}
	sendertest.Faults(t, webhook.Answers, "", func(_, _ string) string { return `{"message":"ana"}` }, send)
}

// A receiver that is being deployed must not cost it its events.
func TestOnlyGoneAndTooLargeArePermanent(t *testing.T) {
	t.Parallel()
	want := map[int]string{410: outbox.Rejected, 413: outbox.Rejected, 429: outbox.Limit, 408: outbox.Network, 425: outbox.Network}
	for _, status := range []int{
		300, 301, 302, 304, 307, 308, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 413, 415, 418, 422, 425, 429, 451,
		500, 501, 502, 503, 504, 520, 599,
	} {
		category := want[status]
		if category == "" && status < 500 {
			category = "http_" + strconv.Itoa(status)
		} else if category == "" {
			category = outbox.Network
		}
		_, err := newSender(t, signedBy(secret("a", 24)), development).Send(t.Context(), order(newReceiver(t, status).URL))
		failed := sendertest.Failure(t, err)
		if failed.Category != category || failed.Code != "http_"+strconv.Itoa(status) || failed.Uncertain != (status >= 500) {
			t.Errorf("%d: got %+v, want category %s", status, *failed, category)
		}
		permanent := outbox.Classify(failed.Category) == outbox.Permanent
		if permanent != (status == 410 || status == 413) {
			t.Errorf("%d: got permanent %v", status, permanent)
		}
	}
}

func TestAnEndpointCanMakeStatusesPermanent(t *testing.T) {
	t.Parallel()
	find := func(context.Context, transporte.Message) (webhook.Endpoint, bool, error) {
		return webhook.Endpoint{Secrets: []string{secret("a", 24)}, Permanent: []int{422, 501}}, true, nil
	}
	for status, category := range map[int]string{422: outbox.Rejected, 501: outbox.Rejected, 400: "http_400", 200: ""} {
		_, err := newSender(t, find, development).Send(t.Context(), order(newReceiver(t, status).URL))
		if category == "" {
			if err != nil {
				t.Errorf("%d: got %v, want it sent", status, err)
			}
			continue
		}
		checkFailure(t, err, category, "http_"+strconv.Itoa(status))
	}
}

func TestGoneIsToldOnceForEachMessageAndForNothingElse(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 404, 410, 500} {
		var gone []string
		opts := development
		opts.Gone = func(ctx context.Context, m transporte.Message) {
			if ctx.Err() != nil {
				t.Errorf("%d: the context has ended: %v", status, ctx.Err())
			}
			gone = append(gone, m.Destination)
		}
		r := newReceiver(t, status)
		_, _ = newSender(t, signedBy(secret("a", 24)), opts).Send(t.Context(), order(r.URL))
		if want := []string{r.URL}; status == 410 && !slices.Equal(gone, want) || status != 410 && gone != nil {
			t.Errorf("%d: got %v told", status, gone)
		}
	}
}

func TestTheURLComesFromTheEndpointOrFromTheMessage(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 200)
	find := func(_ context.Context, m transporte.Message) (webhook.Endpoint, bool, error) {
		e := webhook.Endpoint{Secrets: []string{secret("a", 24)}}
		if m.Destination == "pedidos" {
			e.URL = r.URL
		}
		return e, true, nil
	}
	for _, destination := range []string{"pedidos", r.URL} {
		if _, err := newSender(t, find, development).Send(t.Context(), order(destination)); err != nil {
			t.Errorf("destination %s: %v", destination, err)
		}
	}
	if n := len(r.webhooks()); n != 2 {
		t.Errorf("got %d webhooks, want 2", n)
	}
}

func TestWithoutAnEndpointNothingIsSent(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 200)
	with := func(e webhook.Endpoint, found bool, err error) func(context.Context, transporte.Message) (webhook.Endpoint, bool, error) {
		return func(context.Context, transporte.Message) (webhook.Endpoint, bool, error) { return e, found, err }
	}
	tests := []struct {
		find           func(context.Context, transporte.Message) (webhook.Endpoint, bool, error)
		id             string
		category, code string
	}{
		{with(webhook.Endpoint{}, false, nil), rowID, outbox.Rejected, "endpoint_inexistente"},
		{with(webhook.Endpoint{}, true, errors.New("no database at "+r.URL)), rowID, outbox.Network, "credenciales_excepcion"},
		{with(webhook.Endpoint{}, true, nil), rowID, outbox.Credentials, "sin_credenciales"},
		{signedBy(secret("a", 24), ""), rowID, outbox.Credentials, "secreto_invalido"},
		{signedBy(secret("a", 24)), "", outbox.Rejected, "peticion_invalida"},
		{signedBy(secret("a", 24)), "a.b", outbox.Rejected, "peticion_invalida"},
		{signedBy(secret("a", 24)), "a\r\nb", outbox.Rejected, "peticion_invalida"},
	}
	for _, test := range tests {
		m := order(r.URL)
		m.ID = test.id
		_, err := newSender(t, test.find, development).Send(t.Context(), m)
		checkFailure(t, err, test.category, test.code)
	}
	if got := r.webhooks(); len(got) != 0 {
		t.Errorf("got %d webhooks, want none", len(got))
	}
}

func TestTheTimeoutBoundsLookUpAndCall(t *testing.T) {
	t.Parallel()
	opts := development
	opts.Timeout = 50 * time.Millisecond
	slow := sendertest.Server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client has gone
		<-r.Context().Done()
	})
	_, err := newSender(t, signedBy(secret("a", 24)), opts).Send(t.Context(), order(slow.URL))
	if failed := sendertest.Failure(t, err); failed.Category != outbox.Network || failed.Code != "timeout" {
		t.Errorf("got %+v, want red (timeout)", *failed) // uncertain or not: perhaps the time was over before the request
	}

	waiting := func(ctx context.Context, _ transporte.Message) (webhook.Endpoint, bool, error) {
		<-ctx.Done()
		return webhook.Endpoint{}, false, ctx.Err()
	}
	_, err = newSender(t, waiting, opts).Send(t.Context(), order(slow.URL))
	checkFailure(t, err, outbox.Network, "credenciales_excepcion")
}

func TestTenThousandWebhooksOver64Connections(t *testing.T) {
	t.Parallel()
	answer := func(http.ResponseWriter, *http.Request) {}
	sendertest.Load(t, answer, func(_ *http.Client, url string) func(context.Context, string) (string, error) {
		s := newSender(t, signedBy(secret("a", 24)), development)
		return func(ctx context.Context, id string) (string, error) {
			m := order(url)
			m.ID = id
			return s.Send(ctx, m)
		}
	})
}

func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	prefix := netip.MustParsePrefix
	for names, opts := range map[string]webhook.Options{
		"Timeout":  {Timeout: -1},
		"Allow":    {Allow: []netip.Prefix{prefix("10.0.0.0/8"), {}}},
		"Allow ":   {Allow: []netip.Prefix{prefix("127.0.0.1/32")}},
		"Allow m":  {Allow: []netip.Prefix{prefix("0.0.0.0/0")}},
		"Allow mu": {Allow: []netip.Prefix{prefix("::/0")}},
		"Ports":    {Ports: []uint16{8443, 0}},
		"Client":   {Client: http.DefaultClient, Resolver: net.DefaultResolver},
	} {
		s, err := webhook.New(signedBy(secret("a", 24)), opts)
		if s != nil || !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), "webhook.New: "+names) {
			t.Errorf("%s: got %v, %v, want ErrInvalidOptions that names it", names, s, err)
		}
	}
	if s, err := webhook.New(nil, webhook.Options{}); s != nil || !errors.Is(err, outbox.ErrInvalidOptions) {
		t.Errorf("got %v, %v without a find, want ErrInvalidOptions", s, err)
	}
}

func TestDataIsSentAsItIs(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"a":  1}`, "null", "", "no JSON \xff\x00", `"` + strings.Repeat("ñ", 1<<20) + `"`} {
		r := newReceiver(t, 200)
		m := order(r.URL)
		m.Data = json.RawMessage(data)
		s := newSender(t, signedBy(secret("a", 24)), development)
		for range 2 {
			if _, err := s.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for _, got := range r.webhooks() {
			if string(got.body) != data {
				t.Errorf("got %.50q, want %.50q", got.body, data)
			}
		}
	}
}

func TestTheOperatorsPageHasEveryCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) < 5 {
		t.Fatalf("got %v, %v, want the package's files", sources, err)
	}
	code := regexp.MustCompile(`(?:Code: |return )"([a-z0-9_]+)"`)
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range code.FindAllSubmatch(source, -1) {
			if !strings.Contains(string(page), "`"+string(found[1])+"`") {
				t.Errorf("docs/providers.md says nothing of %s", found[1])
			}
		}
	}
}
