package admin_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestPausesAreKeptOnceEachAndTakenAwayOneByOne(t *testing.T) {
	t.Parallel()
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, table)
			scopes := [][2]string{{"correo", ""}, {"", ana}, {"correo", ana}, {"", ""}, {"correo", luis}}
			for _, s := range scopes {
				for _, want := range []bool{true, false} {
					if changed, err := admin.Pause(t.Context(), b, b.table, s[0], s[1]); changed != want || err != nil {
						t.Errorf("pause %q: got %t, %v, want %t", s, changed, err, want)
					}
				}
			}
			pauses, err := b.table.Pauses(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			var got [][2]string
			for _, p := range pauses {
				got = append(got, [2]string{p.Channel, p.TenantID})
				if p.Since.IsZero() {
					t.Errorf("%+v: got no time", p)
				}
			}
			if !slices.Equal(got, scopes) {
				t.Errorf("got %q, want %q", got, scopes)
			}
			for _, want := range []bool{true, false} {
				if changed, err := admin.Resume(t.Context(), b, b.table, "correo", ""); changed != want || err != nil {
					t.Errorf("resume: got %t, %v, want %t", changed, err, want)
				}
			}
			if n, err := admin.ResumeAll(t.Context(), b, b.table); n != 4 || err != nil {
				t.Errorf("got %d, %v, want the 4 that were left", n, err)
			}
			if pauses, err := b.table.Pauses(t.Context(), b); len(pauses) != 0 || err != nil {
				t.Errorf("got %v, %v, want none", pauses, err)
			}
		})
	}
}

func TestPauseRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	_, err := admin.Pause(t.Context(), b, b.table, "", "ana")
	refused(t, err, outbox.ErrInvalidOptions, "the tenant must be a UUID")
	_, err = admin.Resume(t.Context(), b, b.table, "", "ana")
	refused(t, err, outbox.ErrInvalidOptions, "the tenant must be a UUID")
	for i := range admin.MaxPauses {
		if changed, err := admin.Pause(t.Context(), b, b.table, fmt.Sprint("canal ", i), ""); !changed || err != nil {
			t.Fatalf("%d: got %t, %v", i, changed, err)
		}
	}
	_, err = admin.Pause(t.Context(), b, b.table, "correo", "")
	refused(t, err, outbox.ErrInvalidOptions, "there are 100 pauses", "pause a whole channel")
	if changed, err := admin.Pause(t.Context(), b, b.table, "canal 7", ""); changed || err != nil {
		t.Errorf("one that is there: got %t, %v, want no change", changed, err)
	}
}
