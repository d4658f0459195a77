package relay

import (
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
)

// looks is a claim as bounds hear of it: begun at, it took so long, and the last of n rows had fallen due before.
type looks struct {
	lanes   []string
	bounded bool
	passed  bool
	took    time.Duration
	n       int
	late    time.Duration
}

var (
	everything = []string{"", "correo", "lento"}
	withoutJam = []string{"correo"}
)

func (l looks) note(bs bounds, at time.Time) {
	b := &claim.Batch{TakenAt: at.Add(-l.took), Now: at, Rows: make([]*claim.Row, l.n)}
	if l.n > 0 {
		b.Due = at.Add(-l.late)
	}
	bs.took(l.lanes, l.bounded, l.passed, b, at)
}

func TestClaimBeginsWhereTheLastOneWithTheSameChannelsEnded(t *testing.T) {
	t.Parallel()
	at := time.Now()
	slow := looks{lanes: everything, took: 10 * time.Millisecond, n: 5, late: time.Hour}
	jam := looks{lanes: withoutJam, took: 10 * time.Millisecond, n: 5, late: time.Minute}
	tests := []struct {
		name   string
		before []looks
		lanes  []string
		jam    bool
		after  time.Duration
		want   time.Duration // before at; 0: no bound
	}{
		{"nothing is known", nil, everything, false, 0, 0},
		{"a quick look at everything", []looks{{lanes: everything, took: time.Millisecond, n: 5, late: time.Hour}}, everything, false, 0, 0},
		{"a slow one", []looks{slow}, everything, false, 0, 0},
		{"a slow one after a quick one", []looks{{lanes: everything, took: time.Millisecond, n: 5}, slow}, everything, false, 0, 0},
		{"two slow ones", []looks{slow, slow}, everything, false, fullLook - time.Second, time.Hour},
		{"two slow ones long ago", []looks{slow, slow}, everything, false, fullLook, 0},
		{"rows that have just fallen due", []looks{slow, {lanes: everything, took: 10 * time.Millisecond, n: 5}}, everything, false, 0, dueMargin},
		{"nothing was left", []looks{slow, {lanes: everything, took: 10 * time.Millisecond}}, everything, false, 0, dueMargin},
		{"slow ones of which one passed over what is paused", []looks{slow, {lanes: everything, passed: true, took: 10 * time.Millisecond, n: 5, late: time.Hour}}, everything, false, 0, dueMargin},
		{"an empty one with a bound that did", []looks{slow, slow, {lanes: everything, bounded: true, passed: true}}, everything, false, 0, dueMargin},
		{"very slow ones, and a tenth of the time", []looks{slow, {lanes: everything, took: time.Second, n: 5, late: time.Hour}}, everything, false, 9999 * time.Millisecond, time.Hour},
		{"very slow ones, and more than a tenth", []looks{slow, {lanes: everything, took: time.Second, n: 5, late: time.Hour}}, everything, false, 10 * time.Second, 0},
		{"a jam", []looks{jam}, withoutJam, true, 0, time.Minute},
		{"a jam, and rows that have just fallen due", []looks{{lanes: withoutJam, took: time.Millisecond, n: 5}}, withoutJam, true, 0, dueMargin},
		{"a jam, and a hundredth of the time", []looks{jam}, withoutJam, true, 999 * time.Millisecond, time.Minute},
		{"a jam, and more than a hundredth", []looks{jam}, withoutJam, true, time.Second, 0},
		{"a claim with a bound goes on from it", []looks{jam, {lanes: withoutJam, bounded: true, n: 5, late: time.Second}}, withoutJam, true, 0, time.Second},
		{"an empty one does not", []looks{jam, {lanes: withoutJam, bounded: true}}, withoutJam, true, 0, time.Minute},
		{"the jam is over", []looks{slow, slow, jam}, everything, false, 0, time.Hour},
		{"another lane is open", []looks{jam}, []string{"correo", "webhook"}, true, 0, 0},
	}
	for _, test := range tests {
		bs := bounds{}
		for _, l := range test.before {
			l.note(bs, at)
		}
		var want time.Time
		if test.want > 0 {
			want = at.Add(-test.want)
		}
		if got := bs.from(test.lanes, test.jam, at.Add(test.after)); !got.Equal(want) {
			t.Errorf("%s: got a bound %v before the claim, want %v", test.name, at.Sub(got), test.want)
		}
	}
}

func TestClaimAfterAnEmptyOneWithABoundHasNone(t *testing.T) {
	t.Parallel()
	at, bs := time.Now(), bounds{}
	looks{lanes: withoutJam, took: time.Second, n: 1, late: time.Hour}.note(bs, at)
	if got, want := bs.until(withoutJam, true), at.Add(jamLook); !got.Equal(want) {
		t.Errorf("the next look is %v after the last, want %v", got.Sub(at), want.Sub(at))
	}
	bs.lookAgain(withoutJam)
	if got := bs.from(withoutJam, true, at); !got.IsZero() {
		t.Errorf("got a bound %v before the claim, want none", at.Sub(got))
	}
}
