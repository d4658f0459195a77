package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/internal/localpg"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// The settings belong to a role, and a new session of it has them.
func TestSettingsThatWouldCutTheRelayAreFoundAndMended(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		setting, value, finding string
		severity                doctor.Severity
	}{
		{"idle_session_timeout", "'10min'", "idle-timeout", doctor.Warning},
		{"idle_in_transaction_session_timeout", "500", "idle-timeout", doctor.Warning},
		{"statement_timeout", "'2s'", "statement-timeout", doctor.Warning},
		{"default_transaction_read_only", "on", "read-only", doctor.Broken},
	} {
		t.Run(test.setting, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t)
			role, pool := p.login(t, "")
			p.relayGrants(t, role)
			p.recovers(t, p.through(t, pool))
			p.exec(t, fmt.Sprintf("alter role %s set %s = %s", role, test.setting, test.value))
			f := p.suffers(t, p.through(t, pool), test.finding)
			if f.Severity != test.severity {
				t.Errorf("%s: got %s, want %s", f.Name, f.Severity, test.severity)
			}
			p.mend(t, f)
			p.recovers(t, p.through(t, pool))
		})
	}
}

func TestARoleThatMayHaveFewConnectionsIsFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	role, pool := p.login(t, "connection limit 9")
	p.relayGrants(t, role)
	f := p.suffers(t, p.through(t, pool), "connections-few")
	if !strings.Contains(f.What, role) {
		t.Errorf("got %q, want it to name the limit of %s", f.What, role)
	}
	p.exec(t, "alter role "+role+" connection limit -1")
	p.recovers(t, p.through(t, pool))
}

func TestADatabaseThatIsAwayIsTheOnlyFinding(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "&target_session_attrs=read-write"} {
		dsn := "postgres://relay:s3cr3t@127.0.0.1:1/none?sslmode=disable" + more
		r, err := doctor.Examine(t.Context(), pgtest.PoolOn(t, dsn, nil), outbox.Table{}, doctor.Options{})
		if err != nil || r.Broken == 0 || !slices.Equal(names(r), []string{"no-connection"}) || len(r.Findings) != 1 {
			t.Errorf("got %+v, %v, want that there is no connection", r, err)
		}
		if strings.Contains(text(t, r), "s3cr3t") {
			t.Errorf("the password is in %s", text(t, r))
		}
	}
}

func TestAnOldTransactionIsNamedAndEnded(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	other := p.session(t)
	if _, err := other.Exec(t.Context(), "begin isolation level repeatable read; select 'secreto'"); err != nil {
		t.Fatal(err)
	}
	p.recovers(t, p.examine(t)) // it is young
	p.opts.MaxSnapshotAge = time.Nanosecond
	r := p.examine(t)
	f := p.suffers(t, r, "old-snapshot")
	if want := fmt.Sprintf("pid %d ", other.PgConn().PID()); !strings.Contains(f.What, want) || !strings.Contains(f.What, "idle in transaction") {
		t.Errorf("got %q, want %q and that it is idle in transaction", f.What, want)
	}
	if strings.Contains(text(t, r), "secreto") {
		t.Errorf("the statement of another session is in %s", text(t, r))
	}
	p.mend(t, f)
	p.eventually(t, "select not exists (select from pg_stat_activity where pid = $1)", int(other.PgConn().PID()))
	p.recovers(t, p.examine(t))
}

func TestManyDeadRowsAreFoundAndMended(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.exec(t, `insert into OUTBOX (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado)
		select gen_random_uuid(), 'correo', 'd', 'p', 'k' || i, 'enviado' from generate_series(1, 60000) i`)
	p.exec(t, "delete from OUTBOX")
	p.eventually(t, "select n_dead_tup > 50000 from pg_stat_user_tables where relname = 'outbox'")
	p.mend(t, p.suffers(t, p.examine(t), "dead-rows"))
	p.eventually(t, "select n_dead_tup < 50000 from pg_stat_user_tables where relname = 'outbox'")
	p.recovers(t, p.examine(t))
}

// What belongs to a whole server needs one of the test's own.
func TestWhatHoldsBackAWholeServerIsFoundAndMended(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, localpg.Options{Settings: map[string]string{"max_prepared_transactions": "4", "max_connections": "30", "autovacuum": "on"}})
	dsn, _, err := server.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newPatientIn(t, dsn, outbox.Table{})
	t.Run("replication slot", func(t *testing.T) {
		p.exec(t, "select pg_create_physical_replication_slot('copia', true)")
		p.mend(t, p.suffers(t, p.examine(t), "replication-slot"))
		p.recovers(t, p.examine(t))
	})
	t.Run("prepared transaction", func(t *testing.T) {
		p.exec(t, `begin; create table otra (n int); prepare transaction 'o''tro \ uno'`)
		p.recovers(t, p.examine(t)) // it is young
		p.opts.MaxSnapshotAge = time.Nanosecond
		defer func() { p.opts.MaxSnapshotAge = 0 }()
		p.mend(t, p.suffers(t, p.examine(t), "prepared-transaction"))
		p.recovers(t, p.examine(t))
	})
	t.Run("replication role", func(t *testing.T) {
		role, _ := p.login(t, "")
		database := p.Config().ConnConfig.Database
		for _, whose := range []string{"alter role " + role, "alter role " + role + " in database " + database, "alter database " + database, "alter role all"} {
			p.exec(t, whose+" set session_replication_role = replica")
			p.mend(t, p.suffers(t, p.examine(t), "replication-role"))
			p.recovers(t, p.examine(t))
		}
	})
	t.Run("notification queue", func(t *testing.T) {
		other := p.session(t)
		if _, err := other.Exec(t.Context(), "listen campana"); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Exec(t.Context(), "begin"); err != nil {
			t.Fatal(err)
		}
		p.exec(t, "select count(pg_notify('campana', i || repeat('x', 7900))) from generate_series(1, 12000) i")
		f := p.suffers(t, p.examine(t), "queue-filling")
		if want := fmt.Sprintf("pid %d ", other.PgConn().PID()); !strings.Contains(f.What, want) {
			t.Errorf("got %q, want it to suspect %s", f.What, want)
		}
		p.mend(t, f)
		p.eventually(t, "select pg_notification_queue_usage() < 0.01")
		p.recovers(t, p.examine(t))
	})
	t.Run("connections", func(t *testing.T) {
		for range 20 {
			p.session(t)
		}
		p.suffers(t, p.examine(t), "connections-few")
	})
	t.Run("autovacuum", func(t *testing.T) {
		p.eventually(t, "select count(*) < 10 from pg_stat_activity where backend_type = 'client backend'") // those from before have ended
		p.exec(t, "alter system set autovacuum = off")
		p.exec(t, "select pg_reload_conf()")
		p.eventually(t, "select setting = 'off' from pg_settings where name = 'autovacuum'")
		p.mend(t, p.suffers(t, p.examine(t), "autovacuum-off"))
		p.eventually(t, "select setting = 'on' from pg_settings where name = 'autovacuum'")
		p.recovers(t, p.examine(t))
	})
}

func TestARelayIsSeenAndWhatElseHoldsItsLocksIsEnded(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		senders := relay.Senders{"correo": transporte.Func(func(context.Context, transporte.Message) (string, error) { return "", nil })}
		ended <- relay.Run(ctx, p.Pool, p.table, senders, relay.Options{})
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	p.eventually(t, "select exists (select from pg_stat_activity where datname = current_database() and application_name = $1)", notify.ListenSession)
	p.healthy = slices.DeleteFunc(p.healthy, func(name string) bool { return name == "no-relay" })
	p.recovers(t, p.examine(t))
	other := p.session(t)
	lock := p.table.WatchLock()
	if _, err := other.Exec(t.Context(), "select pg_advisory_lock($1, $2)", lock.Class, lock.Key); err != nil {
		t.Fatal(err)
	}
	f := p.suffers(t, p.examine(t), "lock-foreign")
	if want := fmt.Sprintf("pid %d ", other.PgConn().PID()); !strings.Contains(f.What, want) {
		t.Errorf("got %q, want it to name %s", f.What, want)
	}
	p.mend(t, f)
	p.eventually(t, "select not exists (select from pg_stat_activity where pid = $1)", int(other.PgConn().PID()))
	p.recovers(t, p.examine(t))
}

// A relay that watches names its session so.
func TestABusyRelaysLockIsFine(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	other := p.session(t)
	lock := p.table.WatchLock()
	for _, statement := range []string{"set application_name = '" + notify.WatchSession + "'", fmt.Sprintf("select pg_advisory_lock(%v)", lock)} {
		if _, err := other.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	r := p.examine(t)
	p.recovers(t, r)
	if f := one(t, r, "locks"); !strings.Contains(f.What, fmt.Sprintf("pid %d ", other.PgConn().PID())) || !strings.Contains(f.What, "busy") {
		t.Errorf("got %q, want who holds the lock", f.What)
	}
}

func text(t *testing.T, r doctor.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(encoded)
}
