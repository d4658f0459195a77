package plantillas_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/plantillas"
)

// everything goes through objects, whose order in memory is random, and prints every kind of value.
const everything = `{{define "valor"}}{{range $k, $v := .objeto}}{{$k}}={{$v}};{{end}}{{range .lista}}{{.}},{{end}}{{.n}}{{.precio}}{{end}}` +
	`{{template "valor" .}}{{range $k, $v := .hijos}}[{{$k}}:{{template "valor" $v}}]{{end}}`

func everySet(t testing.TB) *plantillas.Set {
	return load(t, map[string]string{
		"turno.asunto.txt":   "{{range $k, $v := .objeto}}{{$k}}={{$v}};{{end}}",
		"turno.html":         "<p>" + strings.ReplaceAll(everything, "valor", "html") + "</p>",
		"turno.txt":          everything,
		"turno.whatsapp.txt": "n\nprecio\nlista.0\nhijos.a.n",
	})
}

// anyData gives data that everySet renders.
func anyData(r *rand.Rand) string {
	b, err := json.Marshal(anyObject(r, true))
	if err != nil {
		panic(err)
	}
	return string(b)
}

func anyObject(r *rand.Rand, withChildren bool) map[string]any {
	object := map[string]any{}
	for range 2 + r.IntN(8) {
		object[fmt.Sprintf("k%d", r.IntN(1000))] = anyScalar(r)
	}
	list := []any{"x"}
	for range r.IntN(5) {
		list = append(list, anyScalar(r))
	}
	data := map[string]any{"objeto": object, "lista": list, "n": r.Int64(), "precio": json.Number(fmt.Sprintf("%d.%02de%d", r.IntN(99), r.IntN(99), r.IntN(30)-15))}
	if withChildren {
		children := map[string]any{"a": anyObject(r, false)}
		for range r.IntN(3) {
			children[fmt.Sprintf("h%d", r.IntN(100))] = anyObject(r, false)
		}
		data["hijos"] = children
	}
	return data
}

func anyScalar(r *rand.Rand) any {
	return []any{"<b>&'\"", "ñandú", "", true, r.IntN(9), r.Float64(), -r.ExpFloat64() * 1e30}[r.IntN(7)]
}

// made is all that a row is made into.
type made struct {
	email      transporte.Rendered
	parameters string
}

func makeAll(set *plantillas.Set, m transporte.Message) (made, error) {
	r, err := set.Email(m)
	if err != nil {
		return made{}, err
	}
	parameters, err := set.Parameters(m)
	return made{r, strings.Join(parameters, "\x00")}, err
}

func TestTheSameRowMakesTheSameBytesOnEveryAttempt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	set := everySet(t)
	for range 25 {
		m := row(anyData(random))
		before := slices.Clone(m.Data)
		want, err := makeAll(set, m)
		if err != nil {
			t.Fatalf("%s: %v", m.Data, err)
		}
		for attempt := range 10 {
			m.Attempt = attempt + 1
			again := set
			if attempt%5 == 4 {
				again = everySet(t) // another relay, or the same after a restart
			}
			if got, err := makeAll(again, m); err != nil || got != want {
				t.Fatalf("attempt %d of %s: got %+q, %v, want %+q", m.Attempt, m.Data, got, err, want)
			}
		}
		if string(m.Data) != string(before) {
			t.Fatalf("the data was changed from %s to %s", before, m.Data)
		}
	}
}

func TestManyGoroutinesRenderAtOnce(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	set := everySet(t)
	var rows []transporte.Message
	var want []made
	for range 10 {
		m := row(anyData(random))
		r, err := makeAll(set, m)
		if err != nil {
			t.Fatal(err)
		}
		rows, want = append(rows, m), append(want, r)
	}
	var all sync.WaitGroup
	fresh := everySet(t) // nothing was rendered with it yet
	for g := range 8 {
		all.Go(func() {
			for i := range 20 {
				n := (g + i) % len(rows)
				if got, err := makeAll(fresh, rows[n]); err != nil || got != want[n] {
					t.Errorf("got %+q, %v, want %+q", got, err, want[n])
				}
				if _, err := makeAll(fresh, row(`{"objeto": 1}`)); err == nil {
					t.Error("got no error for a row that does not fit")
				}
			}
		})
	}
	all.Wait()
}
