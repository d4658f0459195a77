package pgtest

import (
	"context"
	"errors"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
)

// startContainer is for machines that have Docker and no Postgres.
func startContainer(ctx context.Context) (*localpg.Server, func() error, error) {
	options := []testcontainers.ContainerCustomizer{postgres.BasicWaitStrategies()}
	for name, value := range serverSettings() {
		options = append(options, testcontainers.WithCmdArgs("-c", name+"="+value))
	}
	container, err := postgres.Run(ctx, "postgres:18-alpine", options...)
	stop := func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	dsn, err := container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	server, err := localpg.Open(ctx, dsn)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return server, stop, nil
}
