package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// finished is how many messages stand in the way. With ten million the test takes minutes, and also checks the time of a look.
var finished = flag.Int("metrics.finished", 100_000, "finished messages of the test of a look")

const tenMillion, longestLook = 10_000_000, 100 * time.Millisecond

func TestFinishedMessagesCostALookNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	err := pool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error { return migrate.Up(t.Context(), conn.Conn(), outbox.Table{}) })
	if err != nil {
		t.Fatal(err)
	}
	const insert = `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado, programado_para)
		select gen_random_uuid(), 'correo', 'ana@example.com', 'a', gen_random_uuid()::text, '%s', now() + interval '%s' from generate_series(1, %d)`
	for _, statement := range []string{
		"alter table outbox disable trigger user",
		"vacuum analyze outbox", // statistics of an empty table
		fmt.Sprintf(insert, "enviado", "-1 day", *finished),
		fmt.Sprintf(insert, "pendiente", "-1 hour", 50),
		fmt.Sprintf(insert, "pendiente", "1 hour", 50),
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), backlogSettingsSQL); err != nil {
		t.Fatal(err)
	}
	statement := strings.ReplaceAll(backlogStatement(outbox.Table{}, false), "$1", fmt.Sprint(maxCounted))
	var raw []byte
	if err := tx.QueryRow(t.Context(), "explain (analyze, buffers, format json) "+statement).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	if pages := plans[0].Plan.Hit + plans[0].Plan.Read; pages == 0 || pages > 300 || strings.Contains(string(raw), "Seq Scan") {
		t.Errorf("the look read %d pages for 100 messages, want at most 300 and no scan of the table: %s", pages, raw)
	}
	for range 5 {
		begun := time.Now()
		f, err := look(t.Context(), pool, outbox.Table{}, map[string]*channel{"correo": nil, other: nil})
		if took := time.Since(begun); *finished >= tenMillion && took > longestLook {
			t.Errorf("a look took %v beside %d finished messages, want at most %v", took, *finished, longestLook)
		} else {
			t.Logf("a look took %v beside %d finished messages", took, *finished)
		}
		if c := f.channels["correo"]; err != nil || c.backlog[due] != 50 || c.backlog[later] != 50 {
			t.Errorf("got %+v, %v, want 50 due and 50 later", c, err)
		}
	}
}
