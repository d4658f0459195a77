package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

// Page is a part of a list.
type Page struct {
	Messages []Message
	// Next is where the list goes on, empty at its end. A page may be empty and not the last: each looks at a bounded part of
	// the table.
	Next Cursor
}

// MaxPage is the most messages of a page.
const MaxPage = 1000

// List gives up to limit messages (1 to MaxPage) that fit f, from a place on. Which order it has depends on f: messages that
// wait or are being sent come by the time at which they need attention; messages that failed, the last to fail first; those
// of a tenant by their key; and others in the order of the table's blocks from its end, which is roughly the newest first.
//
// A message that moves while the list is read may be missing or stand there twice. One in procesando without a lease, which
// no relay makes, is found only without a state.
func List(ctx context.Context, db DB, t outbox.Table, f Filter, after Cursor, limit int) (Page, error) {
	if err := f.Validate(t); err != nil {
		return Page{}, err
	}
	if limit < 1 || limit > MaxPage {
		return Page{}, invalid("a page has 1 to %d messages, not %d", MaxPage, limit)
	}
	if err := ready(ctx, db, t); err != nil {
		return Page{}, err
	}
	p, err := list(ctx, db, t, f, wayOf(f, false), after, limit)
	if err != nil && !errors.Is(err, outbox.ErrInvalidOptions) {
		err = failed("list", err)
	}
	return p, err
}

func list(ctx context.Context, db DB, t outbox.Table, f Filter, w way, after Cursor, limit int) (p Page, err error) {
	err = read(ctx, db, func(tx pgx.Tx) (err error) {
		if w.name == "blocks" {
			p, err = listBlocks(ctx, tx, t, f, w, after, limit)
		} else {
			p, err = listIndex(ctx, tx, t, f, w, after, limit)
		}
		return err
	})
	if state := outbox.SQLState(err); after != "" && (state == "22P02" || state == "22007") { // no such uuid, time
		err = invalid("the place %q does not belong to this list: give the same filter, or none to begin anew", after)
	}
	if err != nil {
		return Page{}, err
	}
	return p, nil
}

// listIndex looks at the next entries of an index.
func listIndex(ctx context.Context, tx pgx.Tx, t outbox.Table, f Filter, w way, after Cursor, limit int) (Page, error) {
	var in where
	f.along(w, &in)
	if err := w.after(after, &in); err != nil {
		return Page{}, err
	}
	k1, k2 := w.key[0], w.key[1]
	outer := w
	outer.key = [2]string{"o.k1", "o.k2"}
	if k2 == "" {
		k2, outer.key[1] = "''", ""
	}
	seen := fmt.Sprintf("select %s, %s as k1, %s as k2 from {{table}} o where %s order by %s limit %d",
		plainSQL, k1, k2, in.String(), w.order(), stepRows)
	all := where{args: in.args}
	f.on(&all)
	statement := fmt.Sprintf("select %s, o.k1::text, o.k2::text from (%s) o where %s order by %s limit %d",
		messageSQL, seen, all.String(), outer.order(), limit)
	p, last, err := collect(ctx, tx, w, sql.Fill(statement, t.Names()), all.args)
	if err != nil || len(p.Messages) == limit {
		p.Next = last
		return p, err
	}
	end := fmt.Sprintf("select (%s)::text, (%s)::text from {{table}} o where %s order by %s offset %d limit 1",
		k1, k2, in.String(), w.order(), stepRows-1)
	err = tx.QueryRow(ctx, sql.Fill(end, t.Names()), in.args...).Scan(&k1, &k2)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, nil
	}
	p.Next = w.cursor(k1, k2)
	return p, err
}

// along adds the conditions that the index of this way serves.
func (f Filter) along(w way, in *where) {
	if w.scope != "" {
		in.add(w.scope)
	}
	switch w.name {
	case "id":
		Filter{IDs: f.IDs}.on(in)
	case "key":
		Filter{TenantID: f.TenantID, Key: f.Key}.on(in)
	case "tenant":
		Filter{TenantID: f.TenantID}.on(in)
	case "failed":
		Filter{Since: f.Since, Until: f.Until}.on(in)
	}
}

// listBlocks looks at the next blocks towards the table's begin.
func listBlocks(ctx context.Context, tx pgx.Tx, t outbox.Table, f Filter, w way, after Cursor, limit int) (Page, error) {
	var block, row int64
	if after == "" {
		const size = "select pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint"
		if err := tx.QueryRow(ctx, size, t.String()).Scan(&block); err != nil {
			return Page{}, err
		}
	} else {
		k1, _, err := w.keys(after)
		if err != nil {
			return Page{}, err
		}
		if n, _ := fmt.Sscanf(k1, "(%d,%d)", &block, &row); n != 2 || block < 0 || row < 0 {
			return Page{}, invalid("the place %q does not belong to this list: give the same filter, or none to begin anew", after)
		}
	}
	low := max(0, block-stepBlocks)
	var in where
	in.add("o.ctid >= ?::text::tid and o.ctid < ?::text::tid", tid(low, 0), tid(block, row))
	f.on(&in)
	statement := fmt.Sprintf("select %s, o.ctid::text, '' from {{table}} o where %s order by o.ctid desc limit %d", messageSQL, in.String(), limit)
	p, last, err := collect(ctx, tx, w, sql.Fill(statement, t.Names()), in.args)
	switch {
	case err != nil:
		return Page{}, err
	case len(p.Messages) == limit:
		p.Next = last
	case low > 0:
		p.Next = w.cursor(tid(low, 0), "")
	}
	return p, nil
}

func tid(block, row int64) string { return fmt.Sprintf("(%d,%d)", block, row) }

// collect reads messages and the place of the last.
func collect(ctx context.Context, tx pgx.Tx, w way, statement string, args []any) (p Page, last Cursor, err error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return Page{}, "", err
	}
	p.Messages, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Message, err error) {
		var k1, k2 string
		err = scan(row, &m, &k1, &k2)
		last = w.cursor(k1, k2)
		return m, err
	})
	return p, last, err
}
