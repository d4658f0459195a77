package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
)

//go:embed place.sql
var placeSQL string

var errNoEcho = errors.New("no notification came back")

// listen proves that notifications which are sent through the pool arrive where the relay listens. On a channel of its
// own: relays take whoever speaks on theirs for one of them.
func (e *exam) listen(ctx context.Context) (string, []Finding, error) {
	ear := &session{pool: e.pool, dsn: e.opts.ListenDSN, limits: e.limits}
	defer ear.close()
	if err := ear.open(ctx); err != nil {
		return "", []Finding{found("listen-connection", reason(err))}, nil
	}
	channel := "outbox_doctor_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := ear.conn.Exec(ctx, "listen "+channel); outbox.SQLState(err) != "" {
		return "", []Finding{found("listen-refused", "LISTEN was refused: "+reason(err))}, nil
	} else if err != nil {
		return "", nil, err
	}
	defer e.unlisten(ctx, ear, channel)
	type place struct{ Database, Started string }
	switch at, err := row[place](ctx, ear, placeSQL); {
	case err != nil:
		return "", nil, err
	case at.Database != e.who.Database:
		what := fmt.Sprintf("the relay listens in database %s and writes to %s", quote(at.Database), quote(e.who.Database))
		return "", []Finding{found("listen-elsewhere", what)}, nil
	case at.Started != e.who.Started:
		return "", []Finding{found("listen-elsewhere", "the relay listens on another server than it writes to")}, nil
	}
	switch err := e.echo(ctx, ear.conn, channel); {
	case errors.Is(err, errNoEcho):
		return "", []Finding{found("listen-silent", "a notification did not come back within "+e.limits.echo.String())}, nil
	case err != nil:
		return "", nil, err
	}
	return "a notification that was sent through the pool has arrived", nil, nil
}

func (e *exam) unlisten(ctx context.Context, ear *session, channel string) {
	if ear.conn == nil || ear.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = ear.conn.Exec(ctx, "unlisten "+channel) // behind a pooler the session does not end with ours
}

func (e *exam) echo(ctx context.Context, ear *pgx.Conn, channel string) error {
	voice := &session{pool: e.pool, limits: e.limits}
	defer voice.close()
	if err := voice.open(ctx); err != nil {
		return err
	}
	payload := uuid.NewString()
	if _, err := voice.conn.Exec(ctx, "select pg_notify($1::text, $2::text)", channel, payload); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, e.limits.echo)
	defer cancel()
	for {
		n, err := ear.WaitForNotification(waiting)
		switch {
		case err == nil && n.Channel == channel && n.Payload == payload:
			return nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return errNoEcho
		case err != nil:
			return err
		}
	}
}

// pooler finds out whether the pool's connections share server sessions, and whether the pool's prepared statements
// survive that.
func (e *exam) pooler(ctx context.Context) (string, []Finding, error) {
	one, other := &session{pool: e.pool, limits: e.limits}, &session{pool: e.pool, limits: e.limits}
	defer one.close()
	defer other.close()
	seen := map[*session]int{}
	shared := false
	for _, s := range []*session{one, other, one, other} {
		pid, err := value[int](ctx, s, "select pg_backend_pid()")
		if err != nil {
			return "", nil, err
		}
		before, asked := seen[s]
		shared = shared || asked && pid != before || pid == seen[one] && s == other || pid == seen[other] && s == one
		seen[s] = pid
	}
	switch {
	case !shared && seen[one] != int(one.conn.PgConn().PID()):
		return "the pool goes through a pooler that keeps sessions apart", nil, nil
	case !shared:
		return "the pool goes straight to the server", nil, nil
	case e.pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement && e.collide(ctx, one, other):
		return "", []Finding{found("pooler-statements", "the pool goes through a pooler in transaction mode and prepares statements")}, nil
	}
	return "the pool goes through a pooler in transaction mode, which serves for everything but listening", nil, nil
}

// collide tells whether a statement that one client prepares is in the way of another's.
func (e *exam) collide(ctx context.Context, one, other *session) bool {
	name := "outbox_doctor_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if _, err := one.conn.Prepare(ctx, name, "select 1"); err != nil {
		return true
	}
	defer func() { _ = one.conn.Deallocate(ctx, name) }()
	_, err := other.conn.Prepare(ctx, name, "select 1")
	if err == nil {
		_ = other.conn.Deallocate(ctx, name)
	}
	return outbox.SQLState(err) == "42P05"
}
