package credenciales_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/credenciales"
)

const (
	club    = "0b5f6d0e-6f0c-4c3a-9a43-0d1f6f4f7c11"
	without = "7d3c1a52-2b1e-4a57-8c0d-9b6a1e2f3d44"

	byTenant = `select api_key, phone_number_id from cuentas where organizacion_id = $1`
)

// accounts gives a pool on a database with one account, the club's.
func accounts(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	exec(t, pool, `create table cuentas (organizacion_id uuid, nombre text, api_key text, phone_number_id text)`)
	exec(t, pool, `insert into cuentas values ($1, 'club', 'clave-1', '10045')`, club)
	return pool
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestSQLFindsTheTenantsRow(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	for name, query := range map[string]string{
		club:   byTenant,
		"club": `select api_key, phone_number_id from cuentas where nombre = $1`,
	} {
		lookup, err := credenciales.SQL(pool, query, pgx.RowToStructByName[account])
		if err != nil {
			t.Fatal(err)
		}
		got, found, err := lookup(t.Context(), name)
		if want := (account{"clave-1", "10045"}); err != nil || !found || got != want {
			t.Errorf("%s: got %v, %v, %v, want %v", name, got, found, err, want)
		}
		got, found, err = lookup(t.Context(), without)
		if err != nil || found || got != (account{}) {
			t.Errorf("%s: got %v, %v, %v, want that there is none", without, got, found, err)
		}
	}
}

func TestSQLMakesWhateverTheRowFunctionMakes(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	text, err := credenciales.SQL(pool, `select api_key from cuentas where organizacion_id = $1`, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if got, found, err := text(t.Context(), club); err != nil || !found || got != "clave-1" {
		t.Errorf("got %q, %v, %v, want the key", got, found, err)
	}
	columns, err := credenciales.SQL(pool, byTenant, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"api_key": "clave-1", "phone_number_id": "10045"}
	if got, found, err := columns(t.Context(), club); err != nil || !found || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, %v, want %v", got, found, err, want)
	}
}

func TestSQLErrorsCarryNoColumn(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	type number struct{ APIKey int }
	decrypt := func(row pgx.CollectableRow) (account, error) {
		var key string
		if err := row.Scan(&key); err != nil {
			return account{}, err
		}
		return account{}, errors.New("cannot decrypt " + key)
	}
	for name, test := range map[string]struct {
		lookup func() error
		want   string
	}{
		"the server quotes a column":      {failing(t, pool, `select api_key::int from cuentas where organizacion_id = $1`, pgx.RowTo[int]), "SQLSTATE 22P02"},
		"no such table":                   {failing(t, pool, `select api_key from otra where organizacion_id = $1`, pgx.RowTo[string]), "SQLSTATE 42P01"},
		"a column does not fit its field": {failing(t, pool, `select api_key from cuentas where organizacion_id = $1`, pgx.RowToStructByName[number]), "does not fit"},
		"null":                            {failing(t, pool, `select null::text from cuentas where organizacion_id = $1`, pgx.RowTo[string]), "does not fit"},
		"a column without a field":        {failing(t, pool, byTenant, pgx.RowToStructByName[struct{ APIKey string }]), "does not fit"},
		"the row function quotes it":      {failing(t, pool, `select api_key from cuentas where organizacion_id = $1`, decrypt), "does not fit"},
		"two rows":                        {failing(t, pool, `select api_key from cuentas, generate_series(1, 2) where organizacion_id = $1`, pgx.RowTo[string]), "more than one row"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.lookup()
			var refused *pgconn.PgError
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "clave") || errors.As(err, &refused) {
				t.Errorf("got %v, want an error with %q and without a column", err, test.want)
			}
		})
	}
}

// failing gives a look-up of the club's credentials of which only the error matters.
func failing[C any](t *testing.T, pool *pgxpool.Pool, query string, row pgx.RowToFunc[C]) func() error {
	t.Helper()
	lookup, err := credenciales.SQL(pool, query, row)
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		c, found, err := lookup(context.Background(), club)
		if found {
			return fmt.Errorf("found %v", c)
		}
		return err
	}
}

func TestSQLEndsWithTheContext(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	lookup, err := credenciales.SQL(pool, `select $1::text from pg_sleep(600)`, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, found, err := lookup(ctx, club); found || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, %v, want that the context ended", found, err)
	}
}

func TestSQLSaysThatTheServerCannotBeReached(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://relay:clave-1@127.0.0.1:1/club")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	lookup, err := credenciales.SQL(pool, byTenant, pgx.RowToStructByName[account])
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := lookup(t.Context(), club)
	var unreachable *pgconn.ConnectError
	if found || !errors.As(err, &unreachable) || strings.Contains(err.Error(), "clave") {
		t.Errorf("got %v, %v, want a connection error without the password", found, err)
	}
}

func TestManySendsOfATenantCostOneQuery(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	exec(t, pool, `create sequence consultas`)
	lookup, err := credenciales.SQL(pool, `select api_key, nextval('consultas')::text as phone_number_id
		from cuentas where organizacion_id = $1`, pgx.RowToStructByName[account])
	if err != nil {
		t.Fatal(err)
	}
	cache, err := credenciales.New(lookup, credenciales.Options{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			got, found, err := cache.Find(t.Context(), club)
			if want := (account{"clave-1", "1"}); err != nil || !found || got != want {
				t.Errorf("got %v, %v, %v, want %v", got, found, err, want)
			}
		})
	}
	all.Wait()
}

func TestWhatsAppTellsMissingCredentialsFromAFailedQuery(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	lookup, err := credenciales.SQL(pool, byTenant, pgx.RowToStructByName[account])
	if err != nil {
		t.Fatal(err)
	}
	cache, err := credenciales.New(lookup, credenciales.Options{TTL: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	whatsapp, err := transporte.NewWhatsApp(cache.Find,
		func(_ context.Context, c account, _ transporte.Template) (string, error) {
			return "with " + c.APIKey, nil
		},
		transporte.WhatsAppOptions{})
	if err != nil {
		t.Fatal(err)
	}
	send := func(tenantID string) string {
		id, err := whatsapp.Send(t.Context(), transporte.Message{TenantID: tenantID, Destination: "5491122334455", Template: "turno"})
		if err != nil {
			return err.Error()
		}
		return id
	}
	check := func(when, tenantID, want string) {
		t.Helper()
		if got := send(tenantID); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	check("found", club, "with clave-1")
	check("missing", without, "send failed: credenciales (sin_credenciales)")
	exec(t, pool, `alter table cuentas rename to otras`)
	check("failing", club, "send failed: red (credenciales_excepcion)")
	check("failing for a tenant without", without, "send failed: red (credenciales_excepcion)")
	exec(t, pool, `alter table otras rename to cuentas`)
	exec(t, pool, `update cuentas set api_key = 'clave-2'`)
	check("found again", club, "with clave-2")
}

func TestSQLNamesTheArgumentThatIsWrong(t *testing.T) {
	t.Parallel()
	pool := accounts(t)
	_, noPool := credenciales.SQL(nil, byTenant, pgx.RowTo[string])
	_, noQuery := credenciales.SQL(pool, " \n", pgx.RowTo[string])
	_, noRow := credenciales.SQL[string](pool, byTenant, nil)
	for name, err := range map[string]error{"pool": noPool, "query": noQuery, "row": noRow} {
		if !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(fmt.Sprint(err), "SQL: "+name+" must") {
			t.Errorf("got %v, want ErrInvalidOptions that names %s", err, name)
		}
	}
}

func TestStaticFindsWhatTheMapHeld(t *testing.T) {
	t.Parallel()
	byTenant := map[string]account{club: {"clave-1", "10045"}}
	lookup := credenciales.Static(byTenant)
	delete(byTenant, club)
	byTenant[without] = account{}
	if got, found, err := lookup(t.Context(), club); err != nil || !found || got.APIKey != "clave-1" {
		t.Errorf("got %v, %v, %v, want the club's", got, found, err)
	}
	if got, found, err := lookup(t.Context(), without); err != nil || found {
		t.Errorf("got %v, %v, %v, want that there is none", got, found, err)
	}
	if got, found, err := credenciales.Static[account](nil)(t.Context(), club); err != nil || found {
		t.Errorf("got %v, %v, %v, want that there is none", got, found, err)
	}
}
