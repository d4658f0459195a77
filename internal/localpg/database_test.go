package localpg

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestDatabasesAreSeparateAndDropEndsTheirSessions(t *testing.T) {
	t.Parallel()
	s := startPrivate(t, Options{})
	first, dropFirst, err := s.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := s.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, first, "create table only_once (n integer)")
	run(t, second, "create table only_once (n integer)")

	open, err := pgx.Connect(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close(t.Context())
	if err := dropFirst(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := open.Ping(t.Context()); err == nil {
		t.Error("a session of a dropped database still answers")
	}
	_, err = pgx.Connect(t.Context(), first)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "3D000" {
		t.Errorf("got %v, want 3D000: the database does not exist", err)
	}
	run(t, second, "insert into only_once values (1)")
}

func TestWithDatabaseChangesOnlyTheDatabase(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:p%40ss@db.example:5433/old?sslmode=require&connect_timeout=3",
		"postgresql://u:p%40ss@db.example:5433?dbname=old&sslmode=require&connect_timeout=3",
		"host=db.example port=5433 user=u password='p@ss' dbname=old sslmode=require connect_timeout=3",
	} {
		changed, err := withDatabase(dsn, "fresh")
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.ParseConfig(changed)
		if err != nil {
			t.Fatalf("%s: %v", changed, err)
		}
		if got.Database != "fresh" || got.Host != "db.example" || got.Port != 5433 || got.User != "u" ||
			got.Password != "p@ss" || got.TLSConfig == nil || got.ConnectTimeout.Seconds() != 3 {
			t.Errorf("%s became %s", dsn, changed)
		}
	}
}
