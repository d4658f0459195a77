package outbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// untouched is a transaction that panics when it is asked anything.
type untouched struct{ pgx.Tx }

// secret stands in every invalid value: no error may repeat it.
const secret = "geheimnis"

type change = func(*outbox.Message)

// text makes a change for each way in which a text cannot be stored.
func text(set func(*outbox.Message, string)) []change {
	var all []change
	for _, value := range []string{"", " \t\n\u00a0", secret + "\x00", secret + "\xff", secret + "\xed\xa0\x80", "\xc0\x80" + secret} {
		all = append(all, func(m *outbox.Message) { set(m, value) })
	}
	return all
}

func data(values ...any) []change {
	var all []change
	for _, value := range values {
		all = append(all, func(m *outbox.Message) { m.Data = value })
	}
	return all
}

func raw(documents ...string) []change {
	var all []change
	for _, document := range documents {
		all = append(all, data(json.RawMessage(document), []any{json.RawMessage(document)}, map[string]any{secret: json.RawMessage(document)})...)
	}
	return all
}

func deep(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth))
}

var invalid = []struct {
	field, bound string
	changes      []change
}{
	{"Channel", "", text(func(m *outbox.Message, s string) { m.Channel = s })},
	{"Destination", "", text(func(m *outbox.Message, s string) { m.Destination = s })},
	{"Template", "", text(func(m *outbox.Message, s string) { m.Template = s })},
	{"IdempotencyKey", "", text(func(m *outbox.Message, s string) { m.IdempotencyKey = s })},
	{"IdempotencyKey", "1 to 200 characters, got 201", []change{
		func(m *outbox.Message) { m.IdempotencyKey = secret + strings.Repeat("x", 192) },
		func(m *outbox.Message) { m.IdempotencyKey = secret + strings.Repeat("😀", 192) },
	}},
	{"TenantID", "UUID", append(text(func(m *outbox.Message, s string) { m.TenantID = s }),
		func(m *outbox.Message) { m.TenantID = "urn:uuid:" + tenant },
		func(m *outbox.Message) { m.TenantID = "{" + tenant + "}" },
		func(m *outbox.Message) { m.TenantID = strings.ReplaceAll(tenant, "-", "") },
		func(m *outbox.Message) { m.TenantID = secret },
		func(m *outbox.Message) { m.TenantID = strings.Replace(tenant, "4", "g", 1) },
		func(m *outbox.Message) { m.TenantID = tenant + "\n" },
	)},
	{"MaxAttempts", "1 to 2147483647", []change{
		func(m *outbox.Message) { m.MaxAttempts = -1 },
		func(m *outbox.Message) { m.MaxAttempts = math.MinInt },
		func(m *outbox.Message) { m.MaxAttempts = math.MaxInt32 + 1 },
		func(m *outbox.Message) { m.MaxAttempts = math.MaxInt },
	}},
	{"ScheduledFor", "years 1 to 9999", []change{
		func(m *outbox.Message) { m.ScheduledFor = time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC) },
		func(m *outbox.Message) { m.ScheduledFor = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(m *outbox.Message) { m.ScheduledFor = time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(m *outbox.Message) { m.ScheduledFor = time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC) },
	}},
	{"OrderingKey", "", text(func(m *outbox.Message, s string) { m.OrderingKey = s })[1:]}, // empty means none
	{"OrderingKey", "1 to 200 characters, got 201", []change{func(m *outbox.Message) { m.OrderingKey = secret + strings.Repeat("😀", 192) }}},
	{"Headers", "names of 1 to 200 characters", slices.Concat(
		text(func(m *outbox.Message, s string) { m.Headers = map[string]string{s: secret} }),
		text(func(m *outbox.Message, s string) { m.Headers = map[string]string{secret: s} })[2:], // a value may be empty
		[]change{func(m *outbox.Message) { m.Headers = map[string]string{strings.Repeat("😀", 201): secret} }})},
	{"Data", `\u0000`, raw(`"geheimnis\u0000"`, `{"\u0000": "geheimnis"}`, `"\\\u0000"`)},
	{"Data", `\u0000`, data("geheimnis\x00", map[string]string{"a\x00": secret}, []string{"a", "\x00"})},
	{"Data", "surrogate", raw(`"geheimnis\ud800"`, `"\udc00"`, `"\ud83dgeheimnis"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\n"`, `"\ud83d\\ude00"`, `"\uDBFF"`,
		`"\ude00\ud83d"`, `{"\ud83d": 1}`)},
	{"Data", "UTF-8", raw("\"geheimnis\xff\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\xf5\x80\x80\x80\"", "{\"\x80\": 1}")},
	{"Data", "16000", raw(`1e16001`, `-1e-16001`, `[1,2e999999999999999999999]`, `1E+131073`, strings.Repeat("9", 140000), `{"a":0e-17000}`)},
	{"Data", "5000 deep", data(deep(5001), json.RawMessage(strings.Repeat(`{"geheimnis":`, 5001)+"1"+strings.Repeat("}", 5001)))},
	{"Data", "marshal", data(func() {}, make(chan int), math.NaN(), math.Inf(1), json.RawMessage(`geheimnis`), json.RawMessage(``), json.RawMessage("\"a\x00\""),
		json.Number("geheimnis"), leaky{})},
}

// leaky fails to marshal with an error that carries its value.
type leaky struct{}

func (leaky) MarshalJSON() ([]byte, error) { return nil, errors.New(secret) }

func TestInvalidMessageIsNamedByFieldBeforeTheDatabaseIsAsked(t *testing.T) {
	t.Parallel()
	var table outbox.Table
	for _, test := range invalid {
		for i, change := range test.changes {
			m := message("k")
			change(&m)
			_, err := table.Enqueue(t.Context(), untouched{}, m)
			if !errors.Is(err, outbox.ErrInvalidOptions) {
				t.Errorf("%s, case %d: got %v, want ErrInvalidOptions", test.field, i, err)
				continue
			}
			if text := err.Error(); !strings.Contains(text, "Message."+test.field+" ") || !strings.Contains(text, test.bound) {
				t.Errorf("%s, case %d: got %v, want the field and %q", test.field, i, err, test.bound)
			}
			_, many := table.EnqueueMany(t.Context(), untouched{}, []outbox.Message{message("a"), message("b"), m, message("c")})
			refused(t, many, outbox.ErrInvalidOptions, "message 2:", err.Error())
			if text := fmt.Sprint(err, many); strings.Contains(text, secret) {
				t.Errorf("%s, case %d: the error repeats the value: %s", test.field, i, text)
			}
		}
	}
}

func TestInvalidMessageLeavesTheTransactionUsable(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	for _, way := range drivers {
		tx := way.begin(t, pool, outbox.Table{})
		m := message(way.name)
		m.Data = "a\x00"
		_, err := tx.enqueue(m)
		refused(t, err, outbox.ErrInvalidOptions)
		m.Data = "a"
		if _, err := tx.enqueue(m); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
		if err := tx.commit(); err != nil {
			t.Errorf("%s: %v", way.name, err)
		}
	}
}

func TestValuesAtTheirBoundsAreStored(t *testing.T) {
	t.Parallel()
	pool := built(t, outbox.Table{})
	var ms []outbox.Message
	add := func(key string, change change) {
		m := message(key)
		change(&m)
		ms = append(ms, m)
	}
	add("a", func(*outbox.Message) {})
	add(strings.Repeat("x", 200), func(*outbox.Message) {})
	add(strings.Repeat("😀", 200), func(m *outbox.Message) { m.OrderingKey = strings.Repeat("😀", 200) })
	add(strings.Repeat("x", 199)+" ", func(m *outbox.Message) { m.Channel = strings.Repeat("c", 1000) })
	add("least attempts", func(m *outbox.Message) { m.MaxAttempts = 1 })
	add("most attempts", func(m *outbox.Message) { m.MaxAttempts = math.MaxInt32 })
	add("upper case tenant", func(m *outbox.Message) { m.TenantID = strings.ToUpper(tenant) })
	add("nil tenant", func(m *outbox.Message) { m.TenantID = "00000000-0000-0000-0000-000000000000" })
	add("depth", func(m *outbox.Message) { m.Data = deep(5000) })
	add("width", func(m *outbox.Message) { m.Data = json.RawMessage("[" + strings.Repeat(`[],{},`, 6000) + "[]]") })
	add("large number", func(m *outbox.Message) { m.Data = json.RawMessage(`[1e15999, -1.5e-15996, 0e5, -0]`) })
	add("surrogates", func(m *outbox.Message) { m.Data = json.RawMessage(`"\ud83d\ude00\uD83D\uDE00\\ud83d\\u0000"`) })
	add("headers", func(m *outbox.Message) { m.Headers = map[string]string{strings.Repeat("😀", 200): "", "a": " "} })
	for i, got := range mustEnqueue(t, pool, outbox.Table{}, ms...) {
		if !got.New {
			t.Errorf("%s: got an old message, want it new", ms[i].IdempotencyKey)
		}
	}
	for i, m := range ms {
		if !value[bool](t, pool, "select exists (select from outbox where clave_idempotencia = $1 and organizacion_id = $2)", m.IdempotencyKey, m.TenantID) {
			t.Errorf("message %d is not stored under its key and tenant", i)
		}
	}
}

func TestTextualTenantHasOneToTwoHundredCharacters(t *testing.T) {
	t.Parallel()
	table := outbox.Table{TenantColumn: "empresa", TenantType: outbox.TenantText}
	pool := built(t, table)
	for _, tenant := range []string{"a", strings.Repeat("😀", 200), "Ñandú; drop table", strings.ToUpper(tenant), tenant} {
		m := message("k")
		m.TenantID = tenant
		if got := mustEnqueue(t, pool, table, m)[0]; !got.New {
			t.Errorf("%s: got an old message, want it new: tenants that are texts differ by case", tenant)
		}
		if !value[bool](t, pool, "select exists (select from outbox where empresa = $1)", tenant) {
			t.Errorf("%s: not stored as it is", tenant)
		}
	}
	for _, tenant := range []string{"", " ", strings.Repeat("😀", 201), "a\x00", "\xff"} {
		m := message("k")
		m.TenantID = tenant
		_, err := table.Enqueue(t.Context(), untouched{}, m)
		refused(t, err, outbox.ErrInvalidOptions, "Message.TenantID ")
	}
}
