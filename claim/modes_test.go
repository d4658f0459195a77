package claim_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// Behind a pooler, pools ask in other ways than with prepared statements, and get texts for answers.
func TestRowsMoveInEveryModeOfAPool(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.add(t, fields{"datos": `'{"n": 1}'`, "programado_para": "timestamptz '2026-03-08 12:00:00.123456Z'", "cabeceras": `'{"a": "b"}'`})
			want := f.takeOne(t)
			f.mode(t, mode)
			if ours, err := f.Release(t.Context(), []*claim.Row{want}); err != nil || !ours[0] {
				t.Fatalf("release: got %v, %v", ours, err)
			}
			row := f.ask(t, claim.Ask{Limit: 2, Lease: lease, DueFrom: want.Scheduled.Add(-time.Hour), Channels: []string{"correo"}, Horizon: time.Minute}).Rows[0]
			if row.ID != want.ID || row.Key != want.Key || row.Attempts != 1 || !row.Scheduled.Equal(want.Scheduled) ||
				string(row.Data) != string(want.Data) || string(row.Headers) != string(want.Headers) {
				t.Errorf("got %+v, want %+v", row, want)
			}
			if !f.record(t, claim.Result{Row: row, State: outbox.Pending, RetryIn: time.Hour, Category: "red", Code: "timeout"}) {
				t.Error("got lost, want the row to be still ours")
			}
			f.wantRow(t, id(row), "estado = 'pendiente' and intentos = 1 and ultimo_error_codigo = 'timeout' and proximo_intento_en > now()")
		})
	}
}

// mode opens the store on a pool that asks in this way.
func (f *fixture) mode(t *testing.T, mode pgx.QueryExecMode) {
	t.Helper()
	config := f.pool.Config()
	config.ConnConfig.DefaultQueryExecMode = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if f.Store, _, err = claim.Open(t.Context(), pool, f.table); err != nil {
		t.Fatal(err)
	}
}
