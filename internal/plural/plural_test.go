package plural_test

import (
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/plural"
)

func TestOnlyOneIsSingular(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 messages are", 1: "1 message is", 2: "2 messages are", 21: "21 messages are"} {
		if got := plural.Of(n, "message") + " " + plural.Pick(n, "is", "are"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
