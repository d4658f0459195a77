package webhook

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// signed returns the headers of m, sent at now.
func signed(m transporte.Message, secrets []string, now time.Time) (http.Header, error) {
	if !httpsend.Printable(m.ID) || strings.Contains(m.ID, ".") { // a full stop would let one message sign another
		return nil, &transporte.Error{Category: outbox.Rejected, Code: "peticion_invalida"}
	}
	if len(secrets) == 0 {
		return nil, &transporte.Error{Category: outbox.Credentials, Code: "sin_credenciales"}
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	content := slices.Concat([]byte(m.ID+"."+timestamp+"."), m.Data)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		var ok bool
		if signatures[i], ok = sign(secret, content); !ok {
			return nil, &transporte.Error{Category: outbox.Credentials, Code: "secreto_invalido"}
		}
	}
	header := http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"outbox-relay"},
		"Webhook-Id":        {m.ID},
		"Webhook-Timestamp": {timestamp},
		"Webhook-Signature": {strings.Join(signatures, " ")},
	}
	addTrace(header, m.Headers)
	return header, nil
}

// sign signs with a shared secret (v1, HMAC-SHA256) or a private key (v1a, ed25519).
func sign(secret string, content []byte) (signature string, ok bool) {
	if strings.HasPrefix(secret, privatePrefix) {
		key, ok := parsePrivateKey(secret)
		if !ok {
			return "", false
		}
		return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, content)), true
	}
	key, ok := parseSecret(secret)
	if !ok {
		return "", false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), true
}

// CanSign tells whether Send could sign with a secret.
func CanSign(secret string) bool {
	_, ok := sign(secret, nil)
	return ok
}

const privatePrefix = "whsk_"

// parsePrivateKey returns the key in a private key: its seed of 32 bytes (RFC 8032, 5.1.5), or the seed with the public key
// behind it, as many libraries keep it.
func parsePrivateKey(secret string) (key ed25519.PrivateKey, ok bool) {
	raw, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(secret, privatePrefix))
	if err != nil || len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize || strings.ContainsAny(secret, "\r\n") {
		return nil, false
	}
	key = ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	return key, bytes.HasPrefix(key, raw) // else the public key is another's, and nobody could verify
}

// parseSecret returns the key in a secret. A key of another length than the specification's is none: often it is the text
// of a secret in place of what the text stands for, and a short one can be guessed.
func parseSecret(secret string) (key []byte, ok bool) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(secret, "whsec_"))
	return key, err == nil && len(key) >= 24 && len(key) <= 64 && !strings.ContainsAny(secret, "\r\n")
}
