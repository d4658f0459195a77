package localpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes an empty database. drop removes it and ends the sessions that are still in it. LISTEN channels are
// per database, so tests that run side by side need one each.
func (s *Server) CreateDatabase(ctx context.Context) (dsn string, drop func(context.Context) error, err error) {
	name := "outbox_" + strings.ToLower(rand.Text())
	dsn, err = withDatabase(s.dsn, name)
	if err != nil {
		return "", nil, err
	}
	// Not template1: people put things into it, and one session in it makes the copy fail.
	create := "create database " + name + " template template0"
	if s.version >= 150000 {
		create += " strategy file_copy"
	}
	if err := s.exec(ctx, create); err != nil {
		return "", nil, fmt.Errorf("create database: %w", err)
	}
	drop = func(ctx context.Context) error {
		if err := s.exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
			return fmt.Errorf("drop database %s: %w", name, err)
		}
		return nil
	}
	return dsn, drop, nil
}

func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// withDatabase returns dsn, a URL or keywords and values, with another database.
func withDatabase(dsn, name string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " dbname=" + name, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("the database URL cannot be parsed") // err would repeat the password
	}
	query := u.Query()
	query.Del("dbname")
	query.Del("database")
	u.Path, u.RawPath, u.RawQuery = "/"+name, "", query.Encode()
	return u.String(), nil
}
