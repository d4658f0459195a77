package admin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/admin"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	ana  = "6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f"
	luis = "0b5f6d0e-6f0c-4c3a-9a43-0d1f6f4f7c11"
)

// box is an outbox in a database of the test's own.
type box struct {
	*pgxpool.Pool
	table outbox.Table
}

func open(t *testing.T, table outbox.Table) box {
	t.Helper()
	b := box{pgtest.Pool(t), table}
	err := b.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), table) })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b box) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := b.Exec(t.Context(), sql.Fill(statement, b.table.Names()), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (b box) value(t *testing.T, query string, args ...any) (v string) {
	t.Helper()
	if err := b.QueryRow(t.Context(), "select ("+sql.Fill(query, b.table.Names())+")::text", args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// add inserts n messages in a state that changed at a time by SQL in which i counts from 1, and which fell due an hour before.
func (b box) add(t *testing.T, n int, state outbox.State, channel, changed string) {
	t.Helper()
	b.exec(t, `insert into {{table}} ({{tenant}}, canal, destino, plantilla, clave_idempotencia, estado, intentos, programado_para, creado_en,
			actualizado_en, enviado_en, bloqueado_hasta, ultimo_error_categoria, ultimo_error_codigo)
		select '`+ana+`', $3::text, 'ana@example.com', 'aviso', gen_random_uuid()::text, $2::text, case when $2::text = 'pendiente' then 0 else 5 end,
			changed - interval '1 hour', changed, changed, case when $2::text = 'enviado' then changed end,
			case when $2::text = 'procesando' then now() + interval '1 hour' end,
			case when $2::text in ('fallido', 'descartado') then 'red' end, case when $2::text in ('fallido', 'descartado') then '503' end
		from (select i, `+changed+` as changed from generate_series(1, $1::integer) i) s`, n, string(state), channel)
}

// every gives all messages of a list, page by page.
func (b box) every(t *testing.T, f admin.Filter, limit int) (all []admin.Message, pages int) {
	t.Helper()
	var at admin.Cursor
	for {
		p, err := admin.List(t.Context(), b, b.table, f, at, limit)
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		if len(p.Messages) > limit {
			t.Fatalf("got a page of %d, want at most %d", len(p.Messages), limit)
		}
		all, pages = append(all, p.Messages...), pages+1
		if at = p.Next; at == "" {
			return all, pages
		}
	}
}

func refused(t *testing.T, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want it to say %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line", err)
	}
}
