package webhook_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

// arrived sends a webhook signed with secrets and returns it as it arrived.
func arrived(t *testing.T, headers map[string]string, secrets ...string) received {
	t.Helper()
	r := newReceiver(t, http.StatusNoContent)
	m := order(r.URL)
	m.Headers = headers
	if id, err := newSender(t, signedBy(secrets...), development).Send(t.Context(), m); err != nil || id != rowID {
		t.Fatalf("got %q, %v, want the webhook sent", id, err)
	}
	return r.webhooks()[0]
}

func verify(t *testing.T, got received, secret string) error {
	t.Helper()
	v, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(got.body, got.header)
}

func TestTheReferenceVerifierAcceptsEverySecretInUseAndNoOther(t *testing.T) {
	t.Parallel()
	current, previous, other := secret("a", 24), secret("b", 64), secret("c", 32)
	got := arrived(t, nil, current, previous)
	for _, s := range []string{current, previous} {
		if err := verify(t, got, s); err != nil {
			t.Errorf("got %v, want the signature accepted", err)
		}
	}
	if verify(t, got, other) == nil {
		t.Error("another secret verifies it, too")
	}
	if err := verify(t, arrived(t, nil, strings.TrimPrefix(current, "whsec_")), current); err != nil {
		t.Errorf("a secret without its prefix: %v", err)
	}
	got.body = append(got.body, ' ')
	if verify(t, got, current) == nil {
		t.Error("a changed body verifies, too")
	}
}

// The vector is the one of the specification's libraries.
func TestTheSignatureIsTheSpecifications(t *testing.T) {
	t.Parallel()
	got := arrived(t, nil, secret("a", 24), secret("b", 24))
	signatures := strings.Split(got.header.Get("Webhook-Signature"), " ")
	if len(signatures) != 2 || !strings.HasPrefix(signatures[0], "v1,") || !strings.HasPrefix(signatures[1], "v1,") {
		t.Fatalf("got %q, want two v1 signatures", signatures)
	}
	at, err := strconv.ParseInt(got.header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Fatalf("got timestamp %q, %v, want now", got.header.Get("Webhook-Timestamp"), err)
	}
	v, err := standardwebhooks.NewWebhook(secret("a", 24))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := v.Sign(rowID, time.Unix(at, 0), got.body); err != nil || signatures[0] != want {
		t.Errorf("got %q, want %q", signatures[0], want)
	}
}

func TestTheHeadersAreThoseOfTheSpecificationAndNoMore(t *testing.T) {
	t.Parallel()
	const parent, state = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
	got := arrived(t, map[string]string{
		"traceparent": parent, "tracestate": state, "authorization": "Bearer x", "webhook-id": "another", "x-note": "ours",
	}, secret("a", 24)).header
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "outbox-relay", "Webhook-Id": rowID,
		"Traceparent": parent, "Tracestate": state,
	} {
		if len(got[name]) != 1 || got.Get(name) != want {
			t.Errorf("got %s: %q, want %q", name, got[name], want)
		}
	}
	allowed := []string{
		"Accept-Encoding", "Content-Length", "Content-Type", "Traceparent", "Tracestate", "User-Agent", "Webhook-Id",
		"Webhook-Signature", "Webhook-Timestamp",
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(allowed, name) {
			t.Errorf("got header %s: %q, want it left out", name, got[name])
		}
	}
}

func TestATraceThatIsNotWellFormedIsDroppedAndTheWebhookSent(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, headers := range []map[string]string{
		{"tracestate": "a=b"},
		{"traceparent": ""},
		{"traceparent": good + "\r\nx: y"},
		{"traceparent": "01" + good[2:]},
		{"traceparent": strings.ToUpper(good)},
		{"traceparent": good + "-01"},
		{"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01", "tracestate": "a=b"},
		{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"},
	} {
		got := arrived(t, headers, secret("a", 24)).header
		if got["Traceparent"] != nil || got["Tracestate"] != nil {
			t.Errorf("%q: got %q, %q, want none", headers, got["Traceparent"], got["Tracestate"])
		}
	}
	for _, state := range []string{"a=b\r\nx: y", strings.Repeat("a", 513), "ñ=1"} {
		got := arrived(t, map[string]string{"traceparent": good, "tracestate": state}, secret("a", 24)).header
		if got.Get("Traceparent") != good || got["Tracestate"] != nil {
			t.Errorf("%.20q: got %q, %q, want the parent alone", state, got["Traceparent"], got["Tracestate"])
		}
	}
}

func TestSecretsAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		secret("a", 24): true, secret("a", 64): true, strings.TrimPrefix(secret("a", 32), "whsec_"): true,
		"": false, "whsec_": false, secret("a", 23): false, secret("a", 65): false,
		"whsec_" + strings.Repeat("a", 31): false, secret("a", 24) + "\n": false, "whsk_" + secret("a", 32)[6:]: false,
		"whsec_" + strings.Repeat("-", 32): false,
	} {
		if _, ok := webhook.ParseSecret(s); ok != want {
			t.Errorf("%q: got %v, want %v", s, ok, want)
		}
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	t.Parallel()
	e := webhook.Endpoint{URL: "https://club.example/hook?token=clave", Secrets: []string{secret("a", 24)}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{e, &e, []webhook.Endpoint{e}, struct{ E webhook.Endpoint }{e}} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "whsec") || strings.Contains(got, "clave") {
				t.Errorf("%s of %T prints %s", verb, value, got)
			}
		}
	}
}

func FuzzSecretIsReadAsTheReferenceReadsIt(f *testing.F) {
	f.Add(secret("a", 24))
	f.Add(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", 64))))
	f.Add("whsec_whsec_")
	f.Fuzz(func(t *testing.T, s string) {
		key, ok := webhook.ParseSecret(s)
		if !ok {
			return
		}
		if len(key) < 24 || len(key) > 64 {
			t.Errorf("got a key of %d bytes", len(key))
		}
		ours, err := standardwebhooks.NewWebhookRaw(key)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			t.Fatalf("the reference refuses it: %v", err)
		}
		at := time.Unix(1796050000, 0)
		a, _ := ours.Sign("id", at, []byte("body"))
		if b, _ := theirs.Sign("id", at, []byte("body")); a != b {
			t.Errorf("got %s, want %s", a, b)
		}
	})
}

func FuzzATraceparentThatPassesIsOneLineOfHex(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("00--" + strings.Repeat("0", 48) + "-")
	f.Fuzz(func(t *testing.T, s string) {
		if webhook.ValidParent(s) && (len(s) != 55 || strings.Trim(s, "0123456789abcdef-") != "") {
			t.Errorf("%q passes", s)
		}
	})
}
