package credenciales_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
)

func TestACacheShowsNoSecretHoweverItIsPrinted(t *testing.T) {
	t.Parallel()
	var c counted
	cache := c.cache(t, credenciales.Options{})
	find(t, cache, "t1")
	holder := struct{ Cache *credenciales.Cache[account] }{cache}

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{cache, holder, &holder, []any{cache}} {
			if got := fmt.Sprintf(verb, value); !strings.Contains(got, "credenciales.Cache") || strings.Contains(got, "key") || strings.Contains(got, "t1") {
				t.Errorf("%s of %T: got %s, want only the type's name", verb, value, got)
			}
		}
	}
	b, err := json.Marshal(holder)
	if err != nil || strings.Contains(string(b), "key") {
		t.Errorf("got %s, %v as JSON, want no secret", b, err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("a", "cache", cache, "holder", holder)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("a", "cache", cache, "holder", holder)
	if strings.Contains(log.String(), "key") {
		t.Errorf("got %s in a log, want no secret", log.String())
	}
}
