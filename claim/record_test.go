package claim_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// record writes one result and tells whether the row was still ours.
func (f fixture) record(t *testing.T, result claim.Result) bool {
	t.Helper()
	ours, err := f.Record(t.Context(), []claim.Result{result})
	if err != nil {
		t.Fatal(err)
	}
	return ours[0]
}

func TestRecordWritesEachKindOfResult(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, test := range []struct {
		name   string
		result claim.Result
		want   string
	}{
		{"sent", claim.Result{State: outbox.Sent, ExternalID: "wamid.1"}, `estado = 'enviado' and id_externo = 'wamid.1'
			and enviado_en = actualizado_en and ultimo_error_categoria is null and ultimo_error_codigo is null
			and proximo_intento_en = timestamptz '2026-03-08 12:00:00Z'`},
		{"sent, without an id", claim.Result{State: outbox.Sent}, `estado = 'enviado' and id_externo = 'de_antes'`},
		{"again later", claim.Result{State: outbox.Pending, RetryIn: 90250 * time.Millisecond, Category: "limite", Code: "429"},
			`estado = 'pendiente' and proximo_intento_en = actualizado_en + interval '90.25 seconds' and enviado_en is null
			and ultimo_error_categoria = 'limite' and ultimo_error_codigo = '429' and id_externo = 'de_antes'`},
		{"again at once", claim.Result{State: outbox.Pending, Category: "red"}, `estado = 'pendiente' and proximo_intento_en = actualizado_en`},
		{"failed", claim.Result{State: outbox.Failed, Category: "red", Code: "timeout"}, `estado = 'fallido' and enviado_en is null
			and ultimo_error_categoria = 'red' and ultimo_error_codigo = 'timeout'`},
		{"discarded", claim.Result{State: outbox.Discarded, Category: "numero", Code: "131026"}, `estado = 'descartado' and enviado_en is null
			and ultimo_error_categoria = 'numero' and ultimo_error_codigo = '131026'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.exec(t, "delete from outbox")
			id := f.add(t, fields{"intentos": "1", "ultimo_error_categoria": "'red'", "ultimo_error_codigo": "'timeout'",
				"id_externo": "'de_antes'", "proximo_intento_en": "timestamptz '2026-03-08 12:00:00Z'", "actualizado_en": "now() - interval '1 day'"})
			test.result.Row = f.takeOne(t)
			if !f.record(t, test.result) {
				t.Error("got lost, want the row to be still ours")
			}
			f.wantRow(t, id, test.want)
			f.wantRow(t, id, "intentos = 2 and bloqueado_hasta is null and actualizado_en > now() - interval '1 hour'")
		})
	}
}

// What may happen to a row between its claim and the writing of its result.
var meanwhile = map[string]string{
	"another relay took it after the lease ended": "update outbox set bloqueado_hasta = now() + interval '10 minutes', intentos = intentos + 1",
	"another relay sent it":                       "update outbox set estado = 'enviado', bloqueado_hasta = null, id_externo = 'theirs'",
	"another relay gave it back":                  "update outbox set estado = 'pendiente', bloqueado_hasta = null",
	"a person cancelled it":                       "update outbox set estado = 'descartado'",
	"it was deleted":                              "delete from outbox",
}

func TestALateResultDoesNotOverwriteANewerState(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, change := range meanwhile {
		t.Run(name, func(t *testing.T) {
			f.exec(t, "delete from outbox")
			id := f.add(t, nil)
			row := f.takeOne(t)
			f.exec(t, change)
			before := f.whole(t, id)
			for _, state := range []outbox.State{outbox.Sent, outbox.Pending, outbox.Failed, outbox.Discarded} {
				if f.record(t, claim.Result{Row: row, State: state, Category: "red"}) {
					t.Errorf("%s: got written, want lost", state)
				}
			}
			if got := f.whole(t, id); got != before {
				t.Errorf("got %s, want unchanged %s", got, before)
			}
		})
	}
}

func TestALateReleaseDoesNotOverwriteANewerState(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, change := range meanwhile {
		t.Run(name, func(t *testing.T) {
			f.exec(t, "delete from outbox")
			id := f.add(t, nil)
			row := f.takeOne(t)
			f.exec(t, change)
			before := f.whole(t, id)
			ours, err := f.Release(t.Context(), []*claim.Row{row})
			if err != nil || ours[0] {
				t.Errorf("got %v, %v, want lost", ours, err)
			}
			if got := f.whole(t, id); got != before {
				t.Errorf("got %s, want unchanged %s", got, before)
			}
		})
	}
}

func TestRecordTellsLostRowsOfABatchFromTheOthers(t *testing.T) {
	t.Parallel()
	f := open(t)
	for range 9 {
		f.add(t, nil)
	}
	rows := f.take(t, 9).Rows
	var results []claim.Result
	want := make([]bool, len(rows))
	for i, r := range rows {
		results = append(results, claim.Result{Row: r, State: outbox.Sent, ExternalID: id(r)})
		if want[i] = i%3 != 1; !want[i] {
			f.exec(t, "update outbox set bloqueado_hasta = bloqueado_hasta + interval '1 microsecond' where id = $1", r.ID)
		}
	}
	got, err := f.Record(t.Context(), results)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for i, r := range rows {
		if want[i] {
			f.wantRow(t, id(r), "estado = 'enviado' and id_externo = id::text")
		} else {
			f.wantRow(t, id(r), "estado = 'procesando' and id_externo is null")
		}
	}
}

func TestRecordAndReleaseDoNotWaitLongForARowThatAnotherTransactionHolds(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.add(t, nil)
	f.add(t, nil)
	rows := f.take(t, 2).Rows
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "select from outbox where id = $1 for update", rows[0].ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, record := f.Record(ctx, []claim.Result{{Row: rows[1], State: outbox.Sent}, {Row: rows[0], State: outbox.Sent}})
	_, release := f.Release(ctx, []*claim.Row{rows[1], rows[0]})
	for name, err := range map[string]error{"record": record, "release": release} {
		if outbox.SQLState(err) != "55P03" {
			t.Errorf("%s: got %v, want 55P03", name, err)
		}
	}
	f.wantRow(t, id(rows[1]), "estado = 'procesando'")
}

func TestRecordStoresForeignTextCleanedAndCut(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, test := range []struct {
		name   string
		result claim.Result
		want   string
	}{
		{"an id with NUL", claim.Result{State: outbox.Sent, ExternalID: "a\x00b"}, "id_externo = 'ab'"},
		{"an id of NUL alone", claim.Result{State: outbox.Sent, ExternalID: "\x00"}, "id_externo is null"},
		{"an id that is not UTF-8", claim.Result{State: outbox.Sent, ExternalID: "a\xff\xfeb\xc3"}, `id_externo = U&'a\FFFDb\FFFD'`},
		{"a surrogate half", claim.Result{State: outbox.Sent, ExternalID: "a\xed\xa0\x80b"}, `id_externo = U&'a\FFFDb'`},
		{"an id of 5,000 characters", claim.Result{State: outbox.Sent, ExternalID: strings.Repeat("ñ", 5000)}, "id_externo = repeat('ñ', 1024)"},
		{"a provider's text", claim.Result{State: outbox.Failed, Category: "Número inválido: <ana@example.com>\n", Code: "a\x00b\xff{\"to\": 1}"},
			"ultimo_error_categoria = 'N_mero inv_lido: _ana_example.com__' and ultimo_error_codigo = 'a_b___to_: 1_'"},
		{"a provider's long text", claim.Result{State: outbox.Pending, Category: strings.Repeat("c", 5000), Code: strings.Repeat("é", 5000)},
			"ultimo_error_categoria = repeat('c', 64) and ultimo_error_codigo = repeat('_', 64)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.exec(t, "delete from outbox")
			id := f.add(t, nil)
			test.result.Row = f.takeOne(t)
			if !f.record(t, test.result) {
				t.Error("got lost, want written")
			}
			f.wantRow(t, id, test.want)
		})
	}
}

func TestReleaseGivesBackTheAttemptAndThePlaceInLine(t *testing.T) {
	t.Parallel()
	f := open(t)
	scheduled := f.add(t, fields{"programado_para": "now() - interval '4 hours'"})
	retry := f.add(t, fields{"programado_para": "now() - interval '9 hours'", "proximo_intento_en": "now() - interval '3 hours'",
		"intentos": "2", "ultimo_error_categoria": "'red'", "ultimo_error_codigo": "'timeout'"})
	reclaimed := f.add(t, fields{"programado_para": "now() - interval '8 hours'", "estado": "'procesando'", "intentos": "1",
		"bloqueado_hasta": "now() - interval '2 hours'"})
	rows := f.take(t, 3).Rows
	later := f.add(t, fields{"programado_para": "now() - interval '1 hour'"})
	ours, err := f.Release(t.Context(), rows)
	if err != nil || !slices.Equal(ours, []bool{true, true, true}) {
		t.Fatalf("got %v, %v, want three rows that are still ours", ours, err)
	}
	f.wantRow(t, scheduled, "estado = 'pendiente' and intentos = 0 and bloqueado_hasta is null and proximo_intento_en = programado_para")
	f.wantRow(t, retry, `estado = 'pendiente' and intentos = 2 and proximo_intento_en < now() - interval '2 hours'
		and ultimo_error_categoria = 'red' and ultimo_error_codigo = 'timeout'`)
	f.wantRow(t, reclaimed, "estado = 'pendiente' and intentos = 1 and proximo_intento_en = programado_para")
	// The reclaimed one has waited longest since it was due; before the release its place was the end of its lease.
	if got, want := ids(f.take(t, 4).Rows), []string{reclaimed, scheduled, retry, later}; !slices.Equal(got, want) {
		t.Errorf("claimed again in the order %v, want %v", got, want)
	}
}

func TestAReleasedRowIsNeverDueLaterThanAtItsClaim(t *testing.T) {
	t.Parallel()
	f := open(t)
	// Moved to later while it was being sent, as an application may.
	id := f.add(t, fields{"estado": "'procesando'", "intentos": "1", "bloqueado_hasta": "now() - interval '1 hour'",
		"proximo_intento_en": "now() + interval '1 hour'"})
	row := f.takeOne(t)
	if _, err := f.Release(t.Context(), []*claim.Row{row}); err != nil {
		t.Fatal(err)
	}
	f.wantRow(t, id, "greatest(programado_para, proximo_intento_en) <= now()")
	if again := f.takeOne(t); again.Attempts != row.Attempts {
		t.Errorf("got attempt %d, want %d again", again.Attempts, row.Attempts)
	}
}

func TestNothingToWriteAsksNothing(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.exec(t, "drop table outbox")
	if ours, err := f.Record(t.Context(), nil); err != nil || len(ours) != 0 {
		t.Errorf("record: got %v, %v, want nothing", ours, err)
	}
	if ours, err := f.Release(t.Context(), nil); err != nil || len(ours) != 0 {
		t.Errorf("release: got %v, %v, want nothing", ours, err)
	}
}
