package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
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
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, ok := parseSecret(secret)
		if !ok {
			return nil, &transporte.Error{Category: outbox.Credentials, Code: "secreto_invalido"}
		}
		signatures[i] = sign(key, m.ID, timestamp, m.Data)
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

func sign(key []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// parseSecret returns the key in a secret. A key of another length than the specification's is none: often it is the text
// of a secret in place of what the text stands for, and a short one can be guessed.
func parseSecret(secret string) (key []byte, ok bool) {
	key, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(secret, "whsec_"))
	return key, err == nil && len(key) >= 24 && len(key) <= 64 && !strings.ContainsAny(secret, "\r\n")
}
