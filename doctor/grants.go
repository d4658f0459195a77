package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
)

//go:embed grants.sql
var grantsSQL string

// needs are the rights of a role.
type needs struct {
	table     []string            // privileges on the whole table
	columns   map[string][]string // privilege: columns
	functions []string
}

// relayNeeds is what the statements of the relay touch: claim/*.sql, outbox/purge.sql, notify.
func (e *exam) relayNeeds() needs {
	n := needs{
		table: []string{"select"},
		columns: map[string][]string{"update": {"estado", "intentos", "max_intentos", "proximo_intento_en", "bloqueado_hasta",
			"ultimo_error_categoria", "ultimo_error_codigo", "id_externo", "enviado_en", "actualizado_en"}},
		functions: []string{"pg_notify(text,text)", "pg_advisory_lock(int,int)", "pg_try_advisory_lock(int,int)",
			"pg_advisory_unlock(int,int)", "pg_advisory_unlock_all()"},
	}
	if e.opts.Purge {
		n.table = append(n.table, "delete")
	}
	return n
}

// enqueueNeeds is what outbox/enqueue*.sql and the trigger, which runs with the rights of who inserts, touch.
func (e *exam) enqueueNeeds() needs {
	tenant := e.table.TenantColumn
	return needs{
		table:     []string{"insert"},
		columns:   map[string][]string{"select": {"id", tenant, "clave_idempotencia"}},
		functions: []string{"pg_notify(text,text)", "pg_try_advisory_xact_lock_shared(int,int)", "pg_current_xact_id()"},
	}
}

// MissingGrants gives the role that the pool has and the statements that grant it what it lacks to claim and to record, a
// part of what Examine asks for. It opens one session of its own, and waits for timeout at most.
func MissingGrants(ctx context.Context, pool *pgxpool.Pool, t outbox.Table, timeout time.Duration) (role string, grants []string, err error) {
	e := newExam(pool, t, Options{Timeout: timeout})
	defer e.main.close()
	if err := e.identify(ctx); err != nil {
		return "", nil, err
	}
	if _, _, err := e.pauses(ctx); err != nil {
		return "", nil, err
	}
	n := e.relayNeeds()
	n.functions = nil // without them it polls
	_, grants, err = e.relayLacks(ctx, n)
	return e.who.User, grants, err
}

func (e *exam) grants(ctx context.Context) (string, []Finding, error) {
	lacks, commands, err := e.relayLacks(ctx, e.relayNeeds())
	if err != nil || len(commands) == 0 {
		return fmt.Sprintf("role %q may do what a relay does", e.who.User), nil, err
	}
	what := fmt.Sprintf("role %q lacks %s", e.who.User, lacks)
	if _, more, err := e.missing(ctx, e.who.User, e.enqueueNeeds()); err == nil && len(more) == 0 {
		what += "; it may enqueue, so this may be the application's connection and not the relay's"
	}
	return "", []Finding{found("grants-missing", what, commands...)}, nil
}

// relayLacks says what the role of the pool lacks, and the grants.
func (e *exam) relayLacks(ctx context.Context, n needs) (lacks string, grants []string, err error) {
	lacks, grants, err = e.missing(ctx, e.who.User, n)
	if e.paused.there && !e.paused.readable {
		lacks = strings.TrimPrefix(lacks+", select on the pauses", ", ")
		grants = append(grants, fmt.Sprintf("grant select on %s to %s", e.names["pause_table"], quote(e.who.User)))
	}
	return lacks, grants, err
}

// enqueueGrants looks at the roles that only enqueue.
func (e *exam) enqueueGrants(ctx context.Context) (string, []Finding, error) {
	var all []Finding
	for _, role := range e.opts.EnqueueRoles {
		exists, err := value[bool](ctx, e.main, "select exists (select from pg_catalog.pg_roles where rolname = $1::text)", role)
		if err != nil {
			return "", all, err
		}
		if !exists {
			all = append(all, found("role-missing", fmt.Sprintf("there is no role %q", role), "create role "+quote(role)+" login"))
			continue
		}
		lacks, commands, err := e.missing(ctx, role, e.enqueueNeeds())
		if err != nil {
			return "", all, err
		}
		if len(commands) > 0 {
			all = append(all, found("enqueue-grants-missing", fmt.Sprintf("role %q lacks %s", role, lacks), commands...))
		}
	}
	if len(e.opts.EnqueueRoles) == 0 {
		return "", nil, nil
	}
	return "may enqueue: " + strings.Join(e.opts.EnqueueRoles, ", "), all, nil
}

// missing says what a role lacks, and the grants.
func (e *exam) missing(ctx context.Context, role string, n needs) (lacks string, grants []string, err error) {
	var privileges, columns []string
	for _, p := range n.table {
		privileges, columns = append(privileges, p), append(columns, "")
	}
	for privilege, of := range n.columns {
		for _, c := range of {
			privileges, columns = append(privileges, privilege), append(columns, c)
		}
	}
	type lack struct{ Privilege, Column, Function string }
	all, err := rows[lack](ctx, e.main, grantsSQL, e.table.Schema, e.table.Name, role, privileges, columns, n.functions)
	if err != nil {
		return "", nil, err
	}
	var words, whole []string
	of := map[string][]string{}
	to := " to " + quote(role)
	for _, l := range all {
		switch {
		case l.Function != "":
			words, grants = append(words, "execute on "+l.Function), append(grants, "grant execute on function "+l.Function+to)
		case l.Privilege == "usage":
			words, grants = append(words, "usage on the schema"), append(grants, "grant usage on schema "+quote(e.table.Schema)+to)
		case l.Column == "":
			whole = append(whole, l.Privilege)
		default:
			of[l.Privilege] = append(of[l.Privilege], quote(l.Column))
		}
	}
	for _, privilege := range []string{"select", "update"} {
		if of[privilege] != nil {
			whole = append(whole, fmt.Sprintf("%s (%s)", privilege, strings.Join(of[privilege], ", ")))
		}
	}
	if len(whole) > 0 {
		words = slices.Concat(words, whole)
		grants = append(grants, fmt.Sprintf("grant %s on %s%s", strings.Join(whole, ", "), e.table, to))
	}
	return strings.Join(words, ", "), grants, nil
}
