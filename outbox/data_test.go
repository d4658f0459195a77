package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// judge is a function that asks Postgres whether a jsonb column takes a document.
const judge = `create function takes(document bytea) returns boolean language plpgsql as $$
	begin perform convert_from(document, 'UTF8')::jsonb; return true; exception when others then return false; end $$`

// asked is a transaction that answers every question with errAsked: the message was found to be valid.
type asked struct{ pgx.Tx }

var errAsked = errors.New("asked")

func (asked) QueryRow(context.Context, string, ...any) pgx.Row { return asked{} }
func (asked) Scan(...any) error                                { return errAsked }

func enqueueAccepts(t testing.TB, document string) bool {
	t.Helper()
	m := message("k")
	m.Data = json.RawMessage(document)
	_, err := outbox.Table{}.Enqueue(t.Context(), asked{}, m)
	if !errors.Is(err, errAsked) && !errors.Is(err, outbox.ErrInvalidOptions) {
		t.Fatalf("%.500q: got %v, want it refused as invalid or sent to the database", document, err)
	}
	return errors.Is(err, errAsked)
}

var largeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{4}`)

// compare holds the two verdicts together. Enqueue may refuse numbers and depths that Postgres just takes.
func compare(t testing.TB, document string, accepts, takes bool) {
	t.Helper()
	cautious := len(document) > 5000 || largeExponent.MatchString(document)
	if accepts != takes && !(takes && cautious) {
		t.Errorf("%.500q: Enqueue accepts it: %t, Postgres takes it: %t", document, accepts, takes)
	}
}

func TestEnqueueAcceptsExactlyTheDocumentsThatJSONBTakes(t *testing.T) {
	t.Parallel()
	pool := built(t)
	exec(t, pool, judge)
	r := rand.New(rand.NewPCG(1, 2))
	documents := make([][]byte, 5000)
	for i := range documents {
		documents[i] = []byte(document(r, 4))
	}
	takes := value[[]bool](t, pool, "select array_agg(takes(d) order by n) from unnest($1::bytea[]) with ordinality as u(d, n)", documents)
	taken := 0
	for i, d := range documents {
		compare(t, string(d), enqueueAccepts(t, string(d)), takes[i])
		if takes[i] {
			taken++
		}
	}
	if share := float64(taken) / float64(len(documents)); share < 0.3 || share > 0.9 {
		t.Errorf("Postgres takes %.2f of the documents: they no longer test both verdicts", share)
	}
}

func FuzzEnqueueAcceptsExactlyTheDocumentsThatJSONBTakes(f *testing.F) {
	pool := built(f)
	exec(f, pool, judge)
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		f.Add(document(r, 3))
	}
	f.Fuzz(func(t *testing.T, document string) {
		compare(t, document, enqueueAccepts(t, document), value[bool](t, pool, "select takes($1::bytea)", []byte(document)))
	})
}

var (
	scalars  = []string{"null", "true", "false", "0", "-0", "-0.10", "1e300", "1E-300", "12345678901234567890.12345678901234567890", "1e+0000000000000000005"}
	extremes = []string{"1e15999", "1e16001", "1e131071", "1e131072", "-1e-16383", "1e-16384", "0e-99999", "1e99999999999999999999", "01", "1.", ".5", "+1",
		"NaN", "nul", "'a'", "", strings.Repeat("9", 20000)}
	pieces = []string{"a", "é", "😀", " ", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\ud83d\ude00`, `\uD83D\uDE00`, `\\u0000`, `\\\\ud83d`, "u0000", "<", "\u2028", "\x7f"}
	poison = []string{`\u0000`, `\\\u0000`, `\ud83d`, `\ude00`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`, `\ud83d\\ude00`, `\ud83d\n`, "\xff", "\xed\xa0\x80", "\x00", "\n",
		`\x`, `\u12`, `\`, `"`}
)

// document makes JSON of which some is not, or cannot be stored.
func document(r *rand.Rand, depth int) string {
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	text := func() string {
		var b strings.Builder
		for range r.IntN(4) {
			if r.IntN(25) == 0 {
				b.WriteString(pick(poison))
			} else {
				b.WriteString(pick(pieces))
			}
		}
		return `"` + b.String() + `"`
	}
	var parts []string
	switch kind := r.IntN(8); {
	case kind < 2 && depth > 0: // an array
		for range r.IntN(4) {
			parts = append(parts, document(r, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case kind < 5 && depth > 0: // an object
		for range r.IntN(4) {
			parts = append(parts, text()+" : "+document(r, depth-1))
		}
		return "{ " + strings.Join(parts, " ,\n") + "}"
	case kind < 7:
		return text()
	case r.IntN(8) == 0:
		return pick(extremes)
	}
	return pick(scalars)
}
