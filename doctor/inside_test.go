package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/migrate"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// patience is for machines that are loaded.
const patience = 2 * time.Minute

// named gives the finding of this name, or of the check's when all is well.
func named(t *testing.T, r Report, name string) Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("got %+v, want %s", r, name)
	return Finding{}
}

// A test cannot set the clock of its machine.
func TestAClockThatIsWrongIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ahead time.Duration
		want  Severity
	}{{0, OK}, {time.Minute, Warning}, {-time.Minute, Warning}} {
		e := newExam(pgtest.Pool(t), outbox.Table{}, Options{Timeout: patience})
		e.now = func() time.Time { return time.Now().Add(test.ahead) }
		name := map[Severity]string{OK: "clock", Warning: "clock-skew"}[test.want]
		f := named(t, e.report(t.Context()), name)
		if f.Severity != test.want || !strings.Contains(f.What+f.Why, "does not depend on it") {
			t.Errorf("%v ahead: got %+v, want %s", test.ahead, f, test.want)
		}
	}
}

// Here any relay has been silent for too long.
func TestALockOfARelayThatIsGoneIsFoundAndMended(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	other, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	lock := fmt.Sprintf("select pg_advisory_lock(%v)", outbox.Table{}.WatchLock())
	for _, statement := range []string{"set application_name = '" + notify.WatchSession + "'", lock} {
		if _, err := other.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	e := newExam(pool, outbox.Table{}, Options{Timeout: patience})
	e.silence = 0
	f := named(t, e.report(t.Context()), "lock-stuck")
	if _, err := pool.Exec(t.Context(), f.Commands[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), "select 1"); err == nil {
		t.Error("the session that held the lock is still there")
	}
}

func TestAnOldServerIsFound(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]string{130020: "server-old", 140000: "", 180004: ""} {
		_, findings, _ := (&exam{who: who{Version: version}}).server(t.Context())
		if want == "" != (len(findings) == 0) || want != "" && findings[0].Name != want {
			t.Errorf("%d: got %+v, want %q", version, findings, want)
		}
	}
}

func TestTheQueueIsFineFillingOrFull(t *testing.T) {
	t.Parallel()
	for usage, want := range map[float64]string{0: "", 0.009: "", 0.01: "queue-filling", 0.49: "queue-filling", 0.5: "queue-full", 1: "queue-full"} {
		if got := queueFinding(usage); got != want {
			t.Errorf("%v: got %q, want %q", usage, got, want)
		}
	}
}

// A question that never ends is cut by the server after a second, and the session goes on.
func TestAQuestionIsBounded(t *testing.T) {
	t.Parallel()
	s := &session{pool: pgtest.Pool(t), limits: newLimits(patience)}
	s.limits.statement = time.Second
	defer s.close()
	_, err := value[string](t.Context(), s, "select pg_sleep(600)::text")
	if outbox.SQLState(err) != "57014" {
		t.Errorf("got %v, want 57014", err)
	}
	if _, err := s.conn.Exec(t.Context(), "create table nothing (n int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := value[int](t.Context(), s, "insert into public.nothing values (1) returning 1"); outbox.SQLState(err) != "25006" {
		t.Errorf("got %v, want 25006: a question may not write", err)
	}
	var left string
	if err := s.conn.QueryRow(t.Context(), "show statement_timeout").Scan(&left); err != nil || left != "0" {
		t.Errorf("got statement_timeout %q, %v, want the session's own left alone", left, err)
	}
}

// Whatever the table holds: the planner is told to read it through only if there is no other way.
func TestNoQuestionReadsTheWholeTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	e := newExam(pool, outbox.Table{}, Options{Timeout: patience})
	defer e.main.close()
	if err := e.main.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := migrate.Up(t.Context(), e.main.conn, e.table); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, estado, programado_para)
		select gen_random_uuid(), 'correo', 'd', 'p', 'k' || i, case when i % 10 = 0 then 'pendiente' else 'enviado' end, now() + i * interval '1 minute'
		from generate_series(1, 20000) i; analyze outbox`); err != nil {
		t.Fatal(err)
	}
	for name, statement := range map[string]string{"due": e.dueStatement(), "leases": sql.Fill(leasesSQL, e.names), "channels": sql.Fill(channelsSQL, e.names), "claim": sql.Fill(claimPlanSQL, e.names)} {
		if name != "claim" { // which explains by itself
			statement = "explain " + statement
		}
		lines, err := ask(t.Context(), e.main, pgx.RowTo[string], strings.ReplaceAll(statement, "$1", "'{whatsapp}'"))
		if plan := strings.Join(lines, "\n"); err != nil || strings.Contains(plan, "Seq Scan on outbox") || !strings.Contains(plan, "outbox_due_") {
			t.Errorf("%s: got %v and\n%s\nwant it to go by the index", name, err, plan)
		}
	}
}

// The link takes questions and never answers.
func TestASilentServerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	pool, err := pgxpool.New(t.Context(), "postgres://relay@"+listener.Addr().String()+"/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	begun := time.Now()
	r, err := Examine(t.Context(), pool, outbox.Table{}, Options{})
	if took := time.Since(begun); err != nil || r.Broken != 1 || r.Findings[0].Name != "no-connection" || took > patience {
		t.Errorf("got %+v, %v after %v, want that there is no connection, and not to wait for ever", r, err, took)
	}
}

// The context's end is the examination's, with what is known until then.
func TestAnExaminationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Examine(ctx, pgtest.Pool(t), outbox.Table{}, Options{})
	if err != nil || r.Broken == 0 {
		t.Errorf("got %+v, %v, want that nothing could be looked at", r, err)
	}
}

// docs/doctor.md has an entry for each finding, in the words of the catalog.
func TestThePageSaysWhatTheDoctorSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		entries[name] = oneLine(regexp.MustCompile("(?m)^## (.|\n)*").ReplaceAllString(text, ""))
	}
	for name, k := range catalog {
		entry, there := entries[name]
		delete(entries, name)
		for _, want := range []string{"*" + string(k.severity) + "*", "Why: " + k.why + ".", "Mend: " + k.mend + "."} {
			if !strings.Contains(entry, want) {
				t.Errorf("%s (in the page: %v): got %q, want %q", name, there, entry, want)
			}
		}
	}
	for name := range entries {
		t.Errorf("the page has %s, which the doctor never finds", name)
	}
}

// Every name of the catalog is used, and every name that is used is in the catalog.
func TestTheCatalogIsWhatTheCheckFinds(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") || file.Name() == "catalog.go" {
			continue
		}
		source, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([a-z]+(-[a-z]+)*)"`).FindAllStringSubmatch(string(source), -1) {
			used[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`found\("([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			if _, there := catalog[m[1]]; !there {
				t.Errorf("%s finds %s, which is not in the catalog", file.Name(), m[1])
			}
		}
	}
	for name := range catalog {
		if !used[name] {
			t.Errorf("nothing finds %s", name)
		}
	}
}

// The text is for people: the worst first, in columns, commands as they stand and SQL with its end.
func TestTheTextIsAlignedTheWorstFirst(t *testing.T) {
	t.Parallel()
	r := newReport("t", []Finding{
		{Name: "clock", Severity: OK, What: "f"},
		{Name: "no-relay", Severity: Warning, What: "n", Why: "y", Mend: "m"},
		{Name: "trigger-missing", Severity: Broken, What: "w", Why: "y", Mend: "m", Commands: []string{"drop index i", "relay migrate up"}},
	})
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `broken   trigger-missing  w
                          why: y
                          mend: m
                            drop index i;
                            relay migrate up
warning  no-relay         n
                          why: y
                          mend: m
ok       clock            f
t: broken 1, warnings 1, ok 1
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
