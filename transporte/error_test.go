package transporte_test

import (
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestErrorSaysCategoryCodeAndWhetherTheOutcomeIsKnown(t *testing.T) {
	tests := []struct {
		err  transporte.Error
		want string
	}{
		{transporte.Error{}, "send failed: red"},
		{transporte.Error{Category: "limite", Code: "429", RetryAfter: time.Minute}, "send failed: limite (429)"},
		{transporte.Error{Code: "EOF", Uncertain: true}, "send failed: red (EOF), outcome unknown"},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
