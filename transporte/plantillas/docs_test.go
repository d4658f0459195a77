package plantillas_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"testing"
)

// The examples render what the page shows: its files are those of testdata/club, its data is that of the examples.
func TestThePageAboutTemplatesShowsFilesThatWork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?s)`([a-z_]+[.][a-z.]+)`:\n\n```[a-z]*\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(files) != 5 {
		t.Errorf("got %d files in the page, want 5", len(files))
	}
	for _, f := range files {
		want, err := os.ReadFile("testdata/club/" + f[1])
		if err != nil {
			t.Error(err)
		}
		if f[2] != string(want) {
			t.Errorf("%s: got %q in the page, want %q as in testdata/club", f[1], f[2], want)
		}
	}
	data := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	var got, want any
	if err := json.Unmarshal(turno, &want); err != nil {
		t.Fatal(err)
	}
	if len(data) != 2 || json.Unmarshal(data[1], &got) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got other data in the page than in the examples: %s", data)
	}
}
