package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mafesoftware/outbox-relay/internal/config"
)

// mostResult is how long a relay may take to write a result once the send has ended.
const mostResult = 15 * time.Second

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantStop fails when a send of conf may take longer than the process has to stop.
func wantStop(t *testing.T, conf *config.Config, given time.Duration) {
	t.Helper()
	for _, o := range conf.Outboxes {
		opts := o.RelayOptions().WithDefaults()
		longest := opts.Timeout
		for _, channel := range opts.Channels {
			longest = max(longest, channel.Timeout)
		}
		if given < longest+mostResult {
			t.Errorf("the process is killed after %v, want %v for a send and %v for its result", given, longest, mostResult)
		}
	}
}

func wantCommand(t *testing.T, args ...string) {
	t.Helper()
	a := &app{stdout: io.Discard, stderr: io.Discard}
	if parsed, err := a.parse(args); err != nil || parsed == nil {
		t.Errorf("relay %s: %v", strings.Join(args, " "), err)
	}
}

func TestTheSystemdUnitRunsItsConfigurationAndLetsSendsFinish(t *testing.T) {
	t.Parallel()
	unit := deployed(t, "relay.service")
	conf, err := documented(t, deployed(t, "relay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.Atoi(setting(t, unit, "TimeoutStopSec"))
	if err != nil {
		t.Fatal(err)
	}
	wantStop(t, conf, time.Duration(seconds)*time.Second)
	args, is := strings.CutPrefix(setting(t, unit, "ExecStart"), "/usr/local/bin/relay ")
	if !is {
		t.Error("ExecStart does not run /usr/local/bin/relay")
	}
	wantCommand(t, strings.Fields(args)...)
	for _, m := range regexp.MustCompile(`file:\$\{CREDENTIALS_DIRECTORY\}/(\w+)`).FindAllStringSubmatch(deployed(t, "relay.yaml"), -1) {
		if !strings.Contains(unit, "\nLoadCredential="+m[1]+":") {
			t.Errorf("relay.service lacks the credential %s of relay.yaml", m[1])
		}
	}
}

func setting(t *testing.T, unit, key string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
	if m == nil {
		t.Fatalf("the unit has no %s", key)
	}
	return m[1]
}

func TestTheImageRunsAKnownCommand(t *testing.T) {
	t.Parallel()
	file := deployed(t, "Dockerfile")
	var args []string
	for _, instruction := range []string{"ENTRYPOINT", "CMD"} {
		m := regexp.MustCompile(`(?m)^` + instruction + ` (.*)$`).FindStringSubmatch(file)
		var words []string
		if m == nil || json.Unmarshal([]byte(m[1]), &words) != nil {
			t.Fatalf("got no %s, want a list of words", instruction)
		}
		args = append(args, words...)
	}
	if args[0] != "/relay" {
		t.Errorf("got %q as the command, want /relay", args[0])
	}
	wantCommand(t, args[1:]...)
	if !strings.Contains(file, "ENV RELAY_HTTP_ADDRESS=:9095\nEXPOSE 9095\n") {
		t.Error("the image does not serve health and metrics outside of itself")
	}
}

// object is what the tests read of Kubernetes.
type object struct {
	Kind string
	Data map[string]string
	Spec struct{ Template struct{ Spec pod } }
}

type pod struct {
	Grace      int `yaml:"terminationGracePeriodSeconds"`
	Containers []struct {
		Args  []string
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		Liveness  probe `yaml:"livenessProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Security  struct {
			ReadOnly bool `yaml:"readOnlyRootFilesystem"`
		} `yaml:"securityContext"`
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func TestTheKubernetesDeploymentRunsItsConfigurationAndLetsSendsFinish(t *testing.T) {
	t.Parallel()
	var conf *config.Config
	pods := map[string]pod{}
	decoder := yaml.NewDecoder(strings.NewReader(deployed(t, "kubernetes.yaml")))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, is := o.Data["relay.yaml"]; is {
			if conf, err = documented(t, text); err != nil {
				t.Fatal(err)
			}
		}
		if o.Kind == "Deployment" || o.Kind == "Job" {
			pods[o.Kind] = o.Spec.Template.Spec
		}
	}
	if conf == nil || len(pods) != 2 || len(pods["Job"].Containers) != 1 || len(pods["Deployment"].Containers) != 1 {
		t.Fatalf("got %v, %v, want a configuration, a job and a deployment", conf, pods)
	}
	wantCommand(t, pods["Job"].Containers[0].Args...)
	relay := pods["Deployment"].Containers[0]
	wantCommand(t, relay.Args...)
	wantStop(t, conf, time.Duration(pods["Deployment"].Grace)*time.Second)
	if live, ready := relay.Liveness.HTTPGet, relay.Readiness.HTTPGet; live.Path != "/healthz" || ready.Path != "/readyz" ||
		live.Port != "http" || ready.Port != "http" || relay.Ports[0].Name != "http" || relay.Ports[0].ContainerPort != 9095 {
		t.Errorf("got probes %v and %v of ports %v, want /healthz and /readyz on 9095", live, ready, relay.Ports)
	}
	if !relay.Security.ReadOnly {
		t.Error("the relay may write to its root")
	}
}

func TestEveryAlertStandsInTheDocument(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	if err := yaml.NewDecoder(bytes.NewReader([]byte(deployed(t, "alerts.yaml")))).Decode(&rules); err != nil {
		t.Fatal(err)
	}
	text := documents(t)["operations.md"]
	alerts := rules.Groups[0].Rules
	for _, rule := range alerts {
		if !strings.Contains(text, "\n| "+rule.Alert+" |") {
			t.Errorf("docs/operations.md lacks %s", rule.Alert)
		}
	}
	if documented := strings.Count(text, "\n| Outbox"); documented != len(alerts) {
		t.Errorf("docs/operations.md has %d alerts, want %d", documented, len(alerts))
	}
}
