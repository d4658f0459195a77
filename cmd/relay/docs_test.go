package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/config"
)

// documents are those whose configurations and commands must be good as they stand.
func documents(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	readmes, err := filepath.Glob("../../README*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range append(files, readmes...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// blocks are the fenced blocks of a language.
func blocks(text, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func TestConfigurationsInTheDocumentsAreGood(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range documents(t) {
		for _, block := range blocks(text, "yaml") {
			if !strings.Contains(block, "outboxes:") { // of something else, such as Kubernetes
				continue
			}
			n++
			file := filepath.Join(t.TempDir(), "relay.yaml")
			secret := filepath.Join(filepath.Dir(file), "secret")
			block = regexp.MustCompile(`file:/\S+`).ReplaceAllString(block, "file:"+secret)
			for path, content := range map[string]string{file: block, secret: "postgres://relay@db/club"} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env := func(name string) (string, bool) {
				if strings.HasPrefix(name, "RELAY_") {
					return "", false
				}
				return "postgres://relay@db/club", true
			}
			if _, err := config.Load(config.Source{File: file, Env: env}); err != nil {
				t.Errorf("%s: %v\n%s", name, err, block)
			}
		}
	}
	if n < 3 {
		t.Errorf("got %d configurations, want those of the README and docs/configuration.md", n)
	}
}

func TestCommandsInTheDocumentsAreKnown(t *testing.T) {
	t.Parallel()
	n := 0
	for name, text := range documents(t) {
		for _, block := range blocks(text, "sh") {
			for _, line := range strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n") {
				words, is := strings.CutPrefix(line, "relay ")
				if !is {
					continue
				}
				n++
				words, _, _ = strings.Cut(words, "#")
				a := &app{stdout: io.Discard, stderr: io.Discard}
				if _, err := a.parse(strings.Fields(words)); err != nil {
					t.Errorf("%s: relay %s: %v", name, words, err)
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("got %d commands, want those of the README", n)
	}
}

func TestEveryOptionStandsInTheDocument(t *testing.T) {
	t.Parallel()
	text := documents(t)["configuration.md"]
	for _, key := range config.Keys() {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("docs/configuration.md lacks `%s`", key)
		}
	}
}
