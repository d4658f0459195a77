package metrics_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/retention"
)

// everything makes a series of each metric.
func everything(t *testing.T, s scene) {
	t.Helper()
	o, a := s.Observer(), relay.Attempt{Channel: "correo"}
	o.Wake(notify.Poll)
	o.Claim(relay.Claim{Rows: 1})
	o.SendEnd(o.SendStart(t.Context(), a), relay.SendEnd{Attempt: a, Uncertain: true, Abandoned: true})
	o.Recorded(relay.Recorded{Attempt: a, Outcome: relay.Retried, Category: "red", Code: "timeout"})
	o.Listening(nil)
	o.Watching(true)
	o.DatabaseError(errors.New("away"))
	s.Purged(retention.Round{Deleted: 1})
	s.reaches(t, 1, "outbox_table_query_success")
}

func TestTheDocumentHasEveryMetricAsItIs(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	everything(t, s)
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var real []string
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			if l.GetName() != "outbox" {
				labels = append(labels, l.GetName())
			}
		}
		real = append(real, fmt.Sprintf("%s %s [%s]", family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(labels, ", ")))
	}
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(outbox_\\w+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.Fields(strings.ReplaceAll(row[3], ",", " "))
		slices.Sort(labels)
		documented = append(documented, fmt.Sprintf("%s %s [%s]", row[1], row[2], strings.Join(labels, ", ")))
	}
	for _, metric := range real {
		if !slices.Contains(documented, metric) {
			t.Errorf("docs/metrics.md lacks %s", metric)
		}
	}
	for _, metric := range documented {
		if !slices.Contains(real, metric) {
			t.Errorf("docs/metrics.md has %s, which there is not", metric)
		}
	}
	// And no name that is made up stands in the text around the tables.
	for _, name := range regexp.MustCompile(`outbox_[a-z_]+`).FindAllString(string(text), -1) {
		if !slices.ContainsFunc(real, func(metric string) bool { return strings.HasPrefix(metric, name+" ") }) {
			t.Errorf("docs/metrics.md speaks of %s, which there is not", name)
		}
	}
}
