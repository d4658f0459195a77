package doctor_test

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patient is an outbox, and what the doctor said of it while it was healthy: a server that is made for tests has
// autovacuum switched off, and no relay runs.
type patient struct {
	*pgxpool.Pool
	dsn     string
	table   outbox.Table
	opts    doctor.Options
	healthy []string
}

// patience is for machines that are loaded.
const patience = 2 * time.Minute

func newPatient(t *testing.T) *patient {
	t.Helper()
	return newPatientIn(t, pgtest.Database(t), outbox.Table{})
}

func newPatientIn(t *testing.T, dsn string, table outbox.Table) *patient {
	t.Helper()
	p := &patient{dsn: dsn, table: table, opts: doctor.Options{Timeout: patience}, Pool: pgtest.PoolOn(t, dsn, nil)}
	p.migrate(t)
	p.healthy = p.findings(t)
	return p
}

func (p *patient) migrate(t *testing.T) {
	t.Helper()
	conn := p.session(t)
	defer conn.Close(context.Background())
	if err := migrate.Up(t.Context(), conn, p.table); err != nil {
		t.Fatal(err)
	}
}

// session is a connection of its own as the server's owner.
func (p *patient) session(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// exec runs a statement as the server's owner; OUTBOX in it stands for the table.
func (p *patient) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := p.Exec(t.Context(), strings.ReplaceAll(statement, "OUTBOX", p.table.String()), args...); err != nil {
		t.Fatalf("%v in: %s", err, statement)
	}
}

// eventually waits until a query says true.
func (p *patient) eventually(t *testing.T, query string, args ...any) {
	t.Helper()
	waitfor.True(t, query, func() (yes bool) {
		if err := p.QueryRow(t.Context(), query, args...).Scan(&yes); err != nil {
			t.Fatalf("%v in: %s", err, query)
		}
		return yes
	})
}

// insert is a message of the channel correo that is due.
const insert = `insert into OUTBOX (organizacion_id, canal, destino, plantilla, clave_idempotencia)
	values (gen_random_uuid(), 'correo', 'ana@example.com', 'turno', 'secreto')`

func (p *patient) examine(t *testing.T) doctor.Report {
	t.Helper()
	return p.through(t, p.Pool)
}

// through examines by way of another pool.
func (p *patient) through(t *testing.T, pool *pgxpool.Pool) doctor.Report {
	t.Helper()
	report, err := doctor.Examine(t.Context(), pool, p.table, p.opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.What == "" || f.Severity != doctor.OK && (f.Why == "" || f.Mend == "") {
			t.Errorf("got %+v, want it to say what, why and what to do", f)
		}
	}
	return report
}

func (p *patient) findings(t *testing.T) []string { t.Helper(); return names(p.examine(t)) }

// names are what is not fine, sorted.
func names(r doctor.Report) (all []string) {
	for _, f := range r.Findings {
		if f.Severity != doctor.OK {
			all = append(all, f.Name)
		}
	}
	slices.Sort(all)
	return all
}

// one is the finding of this name.
func one(t *testing.T, r doctor.Report, name string) doctor.Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("got %v, want %s among them", names(r), name)
	}
	return r.Findings[i]
}

// suffers fails the test unless exactly these findings have come to those of a healthy outbox, and gives the first.
func (p *patient) suffers(t *testing.T, r doctor.Report, want ...string) doctor.Finding {
	t.Helper()
	all := slices.Concat(p.healthy, want)
	slices.Sort(all)
	if got := names(r); !slices.Equal(got, all) {
		for _, f := range r.Findings {
			t.Logf("%s %s: %s %q", f.Severity, f.Name, f.What, f.Commands)
		}
		t.Fatalf("got %v, want %v", got, all)
	}
	return one(t, r, want[0])
}

// mend runs the commands of a finding as they stand, each by itself.
func (p *patient) mend(t *testing.T, f doctor.Finding) {
	t.Helper()
	if len(f.Commands) == 0 {
		t.Errorf("%s: got no command, want one that mends it", f.Name)
	}
	for _, command := range f.Commands {
		if command == "relay migrate up" {
			p.migrate(t)
			continue
		}
		p.exec(t, command)
	}
}

// recovers fails the test unless the outbox is as it was.
func (p *patient) recovers(t *testing.T, r doctor.Report) {
	t.Helper()
	if got := names(r); !slices.Equal(got, p.healthy) {
		t.Errorf("after the mending: got %v, want %v", got, p.healthy)
	}
}

// login makes a role that may connect and nothing else, and a pool as that role.
func (p *patient) login(t *testing.T, more string) (name string, pool *pgxpool.Pool) {
	t.Helper()
	name = "outbox_test_" + strings.ToLower(rand.Text())
	p.exec(t, "create role "+name+" login password 'olmo' "+more)
	t.Cleanup(func() { // roles belong to the server and outlive the database
		pool.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, p.dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "drop owned by "+name+"; drop role "+name); err != nil {
			t.Error(err)
		}
	})
	pool = pgtest.PoolOn(t, p.dsn, func(c *pgxpool.Config) { c.ConnConfig.User, c.ConnConfig.Password = name, "olmo" })
	return name, pool
}

// pageGrants are the grants of docs/doctor.md to this role, relay or aplicacion.
func (p *patient) pageGrants(t *testing.T, role, to string) (grants []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer(" to "+role+";", " to "+to+";", " on outbox", " on OUTBOX", "schema public", "schema "+p.table.WithDefaults().Schema)
	for _, block := range strings.Split(string(page), "```sql\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for _, grant := range strings.SplitAfter(block, ";") {
			if grant = names.Replace(grant); strings.Contains(grant, to) {
				grants = append(grants, grant)
			}
		}
	}
	if len(grants) == 0 {
		t.Fatalf("the page has no grants to %s", role)
	}
	return grants
}

// relayGrants lets a role run relays, and the doctor see everything, as the page says.
func (p *patient) relayGrants(t *testing.T, role string) {
	t.Helper()
	for _, grant := range p.pageGrants(t, "relay", role) {
		p.exec(t, grant)
	}
	p.exec(t, "grant pg_monitor to "+role)
	p.exec(t, "grant select on "+p.table.Names()["version_table"]+", "+p.table.Names()["pause_table"]+" to "+role)
}
