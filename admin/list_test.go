package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/outbox"
)

var tables = map[string]outbox.Table{
	"as Drizzle makes it": {},
	"other names":         {Schema: "App", Name: `Sal"ida`, TenantColumn: "empresaId", TenantType: outbox.TenantText},
}

// mixed fills a table with messages of every kind.
func mixed(t *testing.T, b box) {
	t.Helper()
	b.exec(t, `insert into {{table}} ({{tenant}}, canal, destino, plantilla, clave_idempotencia, estado, programado_para, proximo_intento_en,
			bloqueado_hasta, actualizado_en, ultimo_error_categoria, ultimo_error_codigo)
		select (array['`+ana+`', '`+luis+`'])[1 + i % 2]::{{tenant_type}}, (array['correo', 'whatsapp', 'webhook'])[1 + i % 3], 'd' || i, 'aviso', 'k' || i,
			(array['pendiente', 'procesando', 'enviado', 'fallido', 'descartado'])[1 + i % 5],
			case when i % 50 = 5 then 'infinity' else now() - i % 13 * interval '1 minute' end, case when i % 10 = 0 then now() + interval '1 hour' end,
			case when i % 5 = 1 then now() + (i % 3 - 1) * interval '1 minute' end, now() - i % 31 * interval '1 minute',
			case when i % 5 > 2 then (array['red', 'numero'])[1 + i % 2] end, case when i % 5 > 2 then (array['503', 'x'])[1 + i % 4 / 2] end
		from generate_series(1, 600) i`)
}

func TestListGivesExactlyTheMessagesThatFitWhateverThePage(t *testing.T) {
	t.Parallel()
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, table)
			mixed(t, b)
			now := time.Now().Truncate(time.Microsecond)
			ids := strings.Split(b.value(t, "select string_agg(id::text, ',' order by clave_idempotencia) from {{table}} where clave_idempotencia like 'k1%'"), ",")
			for condition, f := range map[string]admin.Filter{
				"true":                                  {},
				"canal = 'correo'":                      {Channel: "correo"},
				"estado = 'fallido'":                    {States: []outbox.State{outbox.Failed}},
				"estado in ('fallido', 'descartado')":   {States: []outbox.State{outbox.Failed, outbox.Discarded}},
				"estado in ('pendiente', 'procesando')": {States: []outbox.State{outbox.Pending, outbox.Processing}},
				"estado in ('pendiente', 'fallido')":    {States: []outbox.State{outbox.Pending, outbox.Failed}},
				"estado = 'enviado'":                    {States: []outbox.State{outbox.Sent}},
				"ultimo_error_categoria = 'red' and ultimo_error_codigo = '503'":                     {Category: "red", Code: "503"},
				"estado = 'descartado' and ultimo_error_categoria = 'numero' and canal = 'whatsapp'": {States: []outbox.State{outbox.Discarded}, Category: "numero", Channel: "whatsapp"},
				"{{tenant}} = '" + ana + "'":                                            {TenantID: ana},
				"{{tenant}} = '" + luis + "' and estado = 'fallido'":                    {TenantID: luis, States: []outbox.State{outbox.Failed}},
				"{{tenant}} = '" + ana + "' and clave_idempotencia = 'k4'":              {TenantID: ana, Key: "k4"},
				"{{tenant}} = '" + luis + "' and clave_idempotencia = 'k4'":             {TenantID: luis, Key: "k4"},
				"clave_idempotencia like 'k1%'":                                         {IDs: ids},
				"clave_idempotencia like 'k1%' and canal = 'webhook'":                   {IDs: ids, Channel: "webhook"},
				"actualizado_en >= now() - interval '10 minutes'":                       {Since: now.Add(-10 * time.Minute)},
				"actualizado_en < now() - interval '10 minutes' and estado = 'fallido'": {States: []outbox.State{outbox.Failed}, Until: now.Add(-10 * time.Minute)},
				"actualizado_en >= now() - interval '20 minutes' and actualizado_en < now() - interval '9 minutes' and estado in ('fallido', 'descartado')": {
					States: []outbox.State{outbox.Failed, outbox.Discarded}, Since: now.Add(-20 * time.Minute), Until: now.Add(-9 * time.Minute)},
			} {
				condition = strings.ReplaceAll(condition, "now()", "'"+now.Format(time.RFC3339Nano)+"'::timestamptz")
				want := strings.Fields(b.value(t, "select coalesce(string_agg(clave_idempotencia, ' ' order by clave_idempotencia), '') from {{table}} where "+condition))
				for _, limit := range []int{7, 1000} {
					messages, _ := b.every(t, f, limit)
					var got []string
					for _, m := range messages {
						got = append(got, m.Key)
					}
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						t.Errorf("%s, pages of %d: got %d messages, want %d", condition, limit, len(got), len(want))
					}
				}
			}
		})
	}
}

func TestListHasWhatNeedsAttentionFirstAndTheLastFailureFirst(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	mixed(t, b)
	for _, test := range []struct {
		states []outbox.State
		order  string
	}{
		{[]outbox.State{outbox.Pending, outbox.Processing}, "{{due}}, id"},
		{[]outbox.State{outbox.Failed, outbox.Discarded}, "actualizado_en desc, id desc"},
	} {
		f := admin.Filter{States: test.states}
		messages, _ := b.every(t, f, 11)
		var got []string
		for _, m := range messages {
			got = append(got, m.Key)
		}
		want := b.value(t, "select string_agg(clave_idempotencia, ' ' order by "+test.order+") from {{table}} where estado = any($1)", test.states)
		if strings.Join(got, " ") != want {
			t.Errorf("%v: got %v, want %v", test.states, got, want)
		}
	}
}

// Few messages among many that do not fit: each page looks at a bounded part, so some are empty.
func TestListFindsTheNeedlesInPagesOfBoundedWork(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 60_000, outbox.Sent, "correo", "now() - i * interval '1 second'")
	b.add(t, 12_000, outbox.Failed, "correo", "now() - i * interval '1 second'")
	b.exec(t, "update {{table}} set canal = 'aguja' where id in (select id from {{table}} where estado = 'fallido' order by actualizado_en limit 3)")
	b.exec(t, "update {{table}} set canal = 'aguja' where id in (select id from {{table}} where estado = 'enviado' order by ctid limit 3)")
	for name, test := range map[string]struct {
		filter      admin.Filter
		want, pages int
	}{
		"by the index":  {admin.Filter{States: []outbox.State{outbox.Failed}, Channel: "aguja"}, 3, 3},
		"by the blocks": {admin.Filter{States: []outbox.State{outbox.Sent}, Channel: "aguja"}, 3, 3},
		"of a tenant":   {admin.Filter{TenantID: ana, Channel: "aguja"}, 6, 15},
	} {
		messages, pages := b.every(t, test.filter, 1000)
		if len(messages) != test.want || pages < test.pages {
			t.Errorf("%s: got %d messages in %d pages, want %d in at least %d", name, len(messages), pages, test.want, test.pages)
		}
	}
}

func TestListRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	b.add(t, 3, outbox.Failed, "correo", "now()")
	now := time.Now()
	failed := admin.Filter{States: []outbox.State{outbox.Failed}}
	for words, test := range map[string]struct {
		f     admin.Filter
		after admin.Cursor
		limit int
	}{
		`unknown state "sent"`:                {f: admin.Filter{States: []outbox.State{"sent"}}},
		"an id must be a UUID":                {f: admin.Filter{IDs: []string{"7"}}},
		"the tenant must be a UUID":           {f: admin.Filter{TenantID: "ana"}},
		"a key needs its tenant":              {f: admin.Filter{Key: "k"}},
		"nothing lies from":                   {f: admin.Filter{Since: now, Until: now}},
		"at most 10000 ids":                   {f: admin.Filter{IDs: make([]string, 10_001)}},
		"a page has 1 to 1000":                {limit: -1},
		"does not belong":                     {after: "x"},
		`"failed~2026-01-01~7" does not`:      {f: failed, after: "failed~2026-01-01~7"},
		`"failed~mañana~` + ana + `" does no`: {f: failed, after: "failed~mañana~" + ana},
		`"due~2026-01-01~` + ana:              {f: failed, after: "due~2026-01-01~" + ana},
		`"blocks~(a,1)~" does not`:            {after: "blocks~(a,1)~"},
	} {
		limit := 10
		if test.limit != 0 {
			limit = test.limit
		}
		_, err := admin.List(t.Context(), b, b.table, test.f, test.after, limit)
		refused(t, err, outbox.ErrInvalidOptions, words)
	}
}

func TestWorkOnAnOlderTableIsRefusedWithTheCommandToRun(t *testing.T) {
	t.Parallel()
	b := open(t, outbox.Table{})
	for _, loss := range []string{"drop index {{failed_index}}", "drop table {{pause_table}}", "drop table {{table}}"} {
		b.exec(t, loss)
		_, err := admin.List(t.Context(), b, b.table, admin.Filter{}, "", 10)
		refused(t, err, outbox.ErrSchema, "run relay migrate")
		_, err = admin.Look(t.Context(), b, b.table)
		refused(t, err, outbox.ErrSchema, "run relay migrate")
		_, err = admin.Redrive(t.Context(), b, b.table, admin.Filter{}, admin.ChangeOptions{})
		refused(t, err, outbox.ErrSchema, "run relay migrate")
		_, err = admin.Show(t.Context(), b, b.table, ana)
		refused(t, err, outbox.ErrSchema, "run relay migrate")
		_, err = admin.Pause(t.Context(), b, b.table, "correo", "")
		refused(t, err, outbox.ErrSchema, "run relay migrate")
	}
}

func TestShowGivesAWholeMessage(t *testing.T) {
	t.Parallel()
	for _, without := range []string{"select 1", "alter table {{table}} drop cabeceras"} {
		b := open(t, outbox.Table{})
		b.exec(t, without)
		b.exec(t, `insert into {{table}} (id, {{tenant}}, canal, destino, plantilla, datos, clave_idempotencia, programado_para)
			values ($1::text::uuid, $2::text::uuid, 'correo', 'ana@example.com', 'aviso', '{"a": 1}', 'k', 'infinity')`, luis, ana)
		m, err := admin.Show(t.Context(), b, b.table, luis)
		if err != nil {
			t.Fatal(err)
		}
		if m.ID != luis || m.TenantID != ana || m.State != outbox.Pending || m.MaxAttempts != 5 || string(m.Data) != `{"a": 1}` || m.ScheduledFor != nil ||
			m.Created == nil || m.Leased || m.Headers != nil {
			t.Errorf("got %+v", m)
		}
		_, err = admin.Show(t.Context(), b, b.table, ana)
		refused(t, err, admin.ErrNotFound, ana)
		_, err = admin.Show(t.Context(), b, b.table, fmt.Sprintf("{%s}", ana))
		refused(t, err, outbox.ErrInvalidOptions, "UUID")
	}
}
