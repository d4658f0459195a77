package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/notify"
	"github.com/mafesoftware/outbox-relay/relay"
)

// noteClaims has the table note the session of each claim.
const noteClaims = `create table claims (session text);
	create function note() returns trigger language plpgsql as $$ begin
		insert into public.claims values (current_setting('application_name')); return null; end $$;
	create trigger note after update on OUTBOX for each row when (old.estado = 'pendiente' and new.estado = 'procesando') execute function note()`

// A claim on the listener's session is quicker, and must do the same as one on the pool.
func TestOnlyASessionThatDoesWhatThePoolsWouldIsBorrowed(t *testing.T) {
	t.Parallel()
	nothing := func(*pgxpool.Config) {}
	as := func(option string) func(dsn string) string {
		return func(dsn string) string { return dsn + " " + option }
	}
	for _, test := range []struct {
		name   string
		change func(*pgxpool.Config)
		listen func(dsn string) string // nil: as the pool
		opts   relay.Options
		want   bool
	}{
		{"as the pool dials", nothing, nil, relay.Options{}, true},
		{"its own DSN, the same role", nothing, as(""), relay.Options{}, true},
		{"its own DSN, another role once it is in", nothing, as("role=ROLE"), relay.Options{}, false},
		{"its own DSN, other settings", nothing, as("options='-c work_mem=1MB'"), relay.Options{}, false},
		{"durable claims", nothing, nil, relay.Options{DurableClaims: true}, false},
		{"a pool that prepares its connections", func(c *pgxpool.Config) {
			c.AfterConnect = func(context.Context, *pgx.Conn) error { return nil }
		}, nil, relay.Options{}, false},
		{"a pool that prepares them each time", func(c *pgxpool.Config) {
			c.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return true, nil }
		}, nil, relay.Options{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.exec(t, noteClaims)
			role := b.mayClaim(t)
			if test.listen != nil {
				c := b.pool.Config().ConnConfig
				dsn := fmt.Sprintf("host=%s port=%d dbname=%s user=%s password='%s' sslmode=disable", c.Host, c.Port, c.Database, c.User, c.Password)
				test.opts.ListenDSN = strings.ReplaceAll(test.listen(dsn), "ROLE", role)
			}
			r := b.sleeping(t, pgtest.PoolOn(t, b.dsn, test.change), newReceiver(), test.opts)
			borrowed := func() int { return b.count(t, "select count(*) from claims where session = $1", notify.ListenSession) }
			for n := 0; n < 20 || n < 100 && test.want && borrowed() == 0; n++ {
				r.awaitSent(t, b.enqueue(t, message())) // which may find the relay busy with the end of the one before
				if n == 20 || n == 60 {
					b.killListener(t) // a claim that stood still for too long may have ended the loans of this session
				}
			}
			claims := b.count(t, "select count(*) from claims")
			if claims < 20 || (borrowed() > 0) != test.want {
				t.Errorf("got %d of %d claims on the listener's session, want some: %v", borrowed(), claims, test.want)
			}
		})
	}
}

// mayClaim makes a role that may do all on the table. It is gone with the test.
func (b *box) mayClaim(t *testing.T) (role string) {
	t.Helper()
	role = "claims_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	b.exec(t, "create role "+role+"; grant all on all tables in schema public to "+role)
	t.Cleanup(func() {
		if _, err := b.pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role); err != nil {
			t.Error(err)
		}
	})
	return role
}
