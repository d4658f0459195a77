package doctor_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// The commands are what the owner has to run; nothing else is granted before them.
func TestGrantsThatARelayLacksAreNamedAndMended(t *testing.T) {
	t.Parallel()
	p := newPatientIn(t, newPatient(t).dsn, outbox.Table{Schema: "mensajes"})
	p.opts.Purge = true
	role, pool := p.login(t, "")
	// It cannot even look.
	r := p.through(t, pool)
	f := one(t, r, "grants-missing")
	if f.Severity != doctor.Broken || strings.Contains(f.What, "may enqueue") {
		t.Errorf("got %+v, want it broken and no guess at an application", f)
	}
	p.mend(t, f)
	for _, f := range p.through(t, pool).Findings { // activity, and the version
		if f.Name == "unseen" {
			p.mend(t, f)
		}
	}
	p.recovers(t, p.through(t, pool))
	for _, lack := range []struct{ revoke, names string }{
		{"revoke delete on OUTBOX from " + role, "delete"},
		{"revoke update (bloqueado_hasta) on OUTBOX from " + role, `"bloqueado_hasta"`},
		{"revoke select on OUTBOX from " + role, "select"},
		{"revoke select on " + p.table.Names()["pause_table"] + " from " + role, "the pauses"},
		{"revoke execute on function pg_notify(text, text) from public", "pg_notify"},
	} {
		p.exec(t, lack.revoke)
		f := one(t, p.through(t, pool), "grants-missing")
		if !strings.Contains(f.What, role) || !strings.Contains(f.What, lack.names) || len(f.Commands) != 1 {
			t.Errorf("after %s: got %+v, want one grant of %s", lack.revoke, f, lack.names)
		}
		p.mend(t, f)
		p.recovers(t, p.through(t, pool))
	}
}

// Neither more nor less than the page says: a role with these grants is fine, and lacks something without any of them.
func TestTheGrantsOfThePageAreThoseThatTheDoctorAsksFor(t *testing.T) {
	t.Parallel()
	p := newPatientIn(t, newPatient(t).dsn, outbox.Table{Schema: "mensajes"})
	p.opts.Purge = true
	relayRole, pool := p.login(t, "")
	enqueueRole, _ := p.login(t, "")
	p.opts.EnqueueRoles = []string{enqueueRole}
	p.relayGrants(t, relayRole)
	for _, grant := range p.pageGrants(t, "aplicacion", enqueueRole) {
		p.exec(t, grant)
	}
	p.recovers(t, p.through(t, pool))
	if _, lacks, err := doctor.MissingGrants(t.Context(), pool, p.table, patience); err != nil || len(lacks) > 0 {
		t.Errorf("to claim and record: got %q, %v, want that nothing is missing", lacks, err)
	}
	for role, finding := range map[string]string{"relay": "grants-missing", "aplicacion": "enqueue-grants-missing"} {
		to := map[string]string{"relay": relayRole, "aplicacion": enqueueRole}[role]
		for _, grant := range p.pageGrants(t, role, to) {
			revoke := strings.NewReplacer("grant ", "revoke ", " to "+to, " from "+to).Replace(grant)
			p.exec(t, revoke)
			p.mend(t, one(t, p.through(t, pool), finding))
			p.recovers(t, p.through(t, pool))
		}
	}
}

// What the commands grant is enough for the statements of the library themselves.
func TestARoleThatOnlyEnqueuesIsExaminedAsSuch(t *testing.T) {
	t.Parallel()
	p := newPatientIn(t, newPatient(t).dsn, outbox.Table{Schema: "mensajes"})
	role, pool := p.login(t, "")
	p.opts.EnqueueRoles = []string{role}
	enqueue := func() error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			for range 2 {
				_, err := p.table.Enqueue(t.Context(), tx, outbox.Message{TenantID: "0b5f6d0e-6f0c-4c3a-9a43-0d1f6f4f7c11", Channel: "correo",
					Destination: "ana@example.com", Template: "turno", IdempotencyKey: "k"})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := enqueue(); outbox.SQLState(err) != "42501" {
		t.Fatalf("got %v, want 42501 before the grants", err)
	}
	f := p.suffers(t, p.examine(t), "enqueue-grants-missing")
	for _, want := range []string{role, "usage", "insert", `select ("id"`} {
		if !strings.Contains(f.What, want) {
			t.Errorf("got %q, want %q", f.What, want)
		}
	}
	p.mend(t, f)
	p.recovers(t, p.examine(t))
	if err := enqueue(); err != nil {
		t.Error(err)
	}
	// Taken for the relay's role, it is told that it may be the application's.
	if f := one(t, p.through(t, pool), "grants-missing"); !strings.Contains(f.What, "may enqueue") {
		t.Errorf("got %q, want the guess that this is the application's connection", f.What)
	}
	p.opts.EnqueueRoles = []string{`nadie "x"`}
	p.suffers(t, p.examine(t), "role-missing")
}

func TestRowSecurityThatHidesMessagesIsFoundAndMended(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	role, pool := p.login(t, "")
	p.relayGrants(t, role)
	p.recovers(t, p.through(t, pool))
	p.exec(t, "alter table OUTBOX enable row level security")
	p.exec(t, insert)
	p.mend(t, p.suffers(t, p.through(t, pool), "row-security"))
	p.recovers(t, p.through(t, pool))
	var seen int
	if err := pool.QueryRow(t.Context(), "select count(*) from "+p.table.String()).Scan(&seen); err != nil || seen != 1 {
		t.Errorf("the relay's role sees %d messages, %v, want 1", seen, err)
	}
}

// The relay works without pg_monitor: what is not seen is said, and nothing is broken.
func TestWhatARoleMayNotSeeIsSaidAndStopsNothing(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	role, pool := p.login(t, "")
	p.relayGrants(t, role)
	p.recovers(t, p.through(t, pool))
	p.exec(t, "revoke pg_monitor from "+role)
	r := p.through(t, pool)
	f := p.suffers(t, r, "unseen")
	if f.Severity != doctor.Warning || r.Broken > 0 {
		t.Errorf("got %+v, want a warning", f)
	}
	p.mend(t, f)
	p.recovers(t, p.through(t, pool))
	// One question that is refused.
	p.exec(t, "revoke select on pg_stat_activity from public")
	r = p.through(t, pool)
	var said []string
	for _, f := range r.Findings {
		if f.Name == "unseen" {
			said = append(said, f.What)
		}
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"snapshots: permission denied (SQLSTATE 42501)", "relays: ", "locks: "} {
		if !strings.Contains(all, want) {
			t.Errorf("got %q, want %q", all, want)
		}
	}
	for _, name := range []string{"trigger", "listen", "grants", "leases"} {
		if f := one(t, r, name); f.Severity != doctor.OK {
			t.Errorf("%s: got %s, want it fine all the same", name, f.Severity)
		}
	}
}

// Another session has the table locked: nobody waits for it.
func TestALockedTableIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	other := p.session(t)
	if _, err := other.Exec(t.Context(), "begin; lock table "+p.table.String()+" in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	r := p.examine(t)
	if f := one(t, r, "unseen"); !strings.Contains(f.What, "somebody else has it locked") || r.Broken > 0 {
		t.Errorf("got %v with %q, want that the table is locked and nothing broken", names(r), f.What)
	}
	if _, err := other.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	p.recovers(t, p.examine(t))
}
