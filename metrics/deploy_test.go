package metrics_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mafesoftware/outbox-relay/metrics"
)

// series are the names and labels under which Prometheus has what the metrics make.
func series(t *testing.T) map[string][]string {
	t.Helper()
	s := open(t, metrics.Options{})
	everything(t, s)
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for _, family := range families {
		labels := []string{"instance", "job"} // of Prometheus
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		if family.GetMetric()[0].GetHistogram() == nil {
			known[family.GetName()] = labels
			continue
		}
		known[family.GetName()+"_bucket"] = append(labels, "le")
		known[family.GetName()+"_sum"], known[family.GetName()+"_count"] = labels, labels
	}
	return known
}

// expressions are those of the alerts and the dashboard, by the name of each.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile("../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(read("alerts.yaml"), &alerts); err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
		Templating struct{ List []struct{ Query any } }
	}
	if err := json.Unmarshal(read("dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, rule := range alerts.Groups[0].Rules {
		found[rule.Alert] = rule.Expr
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found[panel.Title+" "+target.RefID] = target.Expr
		}
	}
	variable, _ := dashboard.Templating.List[1].Query.(map[string]any)
	found["the variable outbox"], _ = variable["query"].(string)
	return found
}

var (
	metricName = regexp.MustCompile(`\boutbox_\w+`)
	labelList  = regexp.MustCompile(`by \(([^)]*)\)`)
	matcher    = regexp.MustCompile(`(\w+)(?:=~|=|!~|!=)"`)
)

func TestTheDashboardAndTheAlertsUseMetricsAndLabelsThatThereAre(t *testing.T) {
	t.Parallel()
	known := series(t)
	all := expressions(t)
	if len(all) < 25 {
		t.Errorf("got the expressions %v, want those of the alerts and the dashboard", slices.Sorted(maps.Keys(all)))
	}
	for where, expr := range all {
		names := metricName.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: no metric in %q", where, expr)
		}
		var labels []string
		for _, list := range labelList.FindAllStringSubmatch(expr, -1) {
			labels = append(labels, strings.Split(list[1], ", ")...)
		}
		for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
			labels = append(labels, m[1])
		}
		for _, name := range names {
			has, ok := known[name]
			if !ok {
				t.Errorf("%s: there is no %s", where, name)
			}
			for _, label := range labels {
				if ok && !slices.Contains(has, label) && len(names) == 1 {
					t.Errorf("%s: %s has no label %s", where, name, label)
				}
			}
		}
	}
}
