package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/mafesoftware/outbox-relay/outbox"
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

// A receiver verifies v1a by the specification: ed25519 over id, timestamp and body with full stops between.
func TestAReceiverWithThePublicKeyVerifiesEachPrivateKeyInUse(t *testing.T) {
	t.Parallel()
	seeds := []string{strings.Repeat("a", 32), strings.Repeat("b", 32)}
	whole := ed25519.NewKeyFromSeed([]byte(seeds[1]))
	shared := secret("c", 32)
	got := arrived(t, nil, privateKey([]byte(seeds[0])), privateKey(whole), shared)
	signatures := strings.Split(got.header.Get("Webhook-Signature"), " ")
	if len(signatures) != 3 {
		t.Fatalf("got %q, want three signatures", signatures)
	}
	content := []byte(rowID + "." + got.header.Get("Webhook-Timestamp") + "." + string(got.body))
	for i, seed := range seeds {
		raw, isV1a := strings.CutPrefix(signatures[i], "v1a,")
		signature, err := base64.StdEncoding.DecodeString(raw)
		public := ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey)
		if !isV1a || err != nil || !ed25519.Verify(public, content, signature) {
			t.Errorf("got %q, %v, want a v1a signature of key %d", signatures[i], err, i)
		}
		if ed25519.Verify(public, append(content, '.'), signature) {
			t.Errorf("signature %d also fits another body", i)
		}
	}
	if err := verify(t, got, shared); err != nil { // the reference knows v1 only, and must not stumble over the others
		t.Errorf("got %v, want the shared secret verified beside the keys", err)
	}
}

func privateKey(raw []byte) string { return "whsk_" + base64.StdEncoding.EncodeToString(raw) }

// The vector is the first of RFC 8032, 7.1.
func TestPrivateKeysAreThoseOfRFC8032(t *testing.T) {
	t.Parallel()
	seed, _ := hex.DecodeString("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
	public, _ := hex.DecodeString("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
	for _, raw := range [][]byte{seed, append(slices.Clone(seed), public...)} {
		key, ok := webhook.ParsePrivateKey(privateKey(raw))
		if !ok || !bytes.Equal(key.Public().(ed25519.PublicKey), public) {
			t.Errorf("%d bytes: got %v, want the key of the vector", len(raw), ok)
		}
	}
	for name, wrong := range map[string]string{
		"empty": "whsk_", "short": privateKey(seed[1:]), "long": privateKey(append(slices.Clone(seed), 0)),
		"another public key": privateKey(append(slices.Clone(public), public...)), "a line break": privateKey(seed) + "\n",
		"no base64": "whsk_" + strings.Repeat("-", 44),
	} {
		if _, ok := webhook.ParsePrivateKey(wrong); ok {
			t.Errorf("%s: got a key", name)
		}
		m := order("https://club.example")
		_, err := newSender(t, signedBy(wrong), webhook.Options{Resolver: noNames(t)}).Send(t.Context(), m)
		checkFailure(t, err, outbox.Credentials, "secreto_invalido")
	}
}

func FuzzPrivateKeySignsWhatItsPublicKeyVerifies(f *testing.F) {
	f.Add(privateKey([]byte(strings.Repeat("a", 32))))
	f.Add(privateKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat("a", 32)))))
	f.Add("whsk_")
	f.Fuzz(func(t *testing.T, s string) {
		key, ok := webhook.ParsePrivateKey(s)
		if ok && !ed25519.Verify(key.Public().(ed25519.PublicKey), []byte("a.1.b"), ed25519.Sign(key, []byte("a.1.b"))) {
			t.Errorf("%q signs what nobody can verify", s)
		}
	})
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
	e := webhook.Endpoint{URL: "https://club.example/hook?token=clave", Secrets: []string{secret("a", 24), privateKey(make([]byte, 32))}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{e, &e, []webhook.Endpoint{e}, struct{ E webhook.Endpoint }{e}} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "whs") || strings.Contains(got, "clave") {
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
