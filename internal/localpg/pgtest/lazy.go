package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
)

// lazyServer starts a server when it is first asked for one.
type lazyServer struct {
	once   sync.Once
	server *localpg.Server
	stop   func() error // nil when nothing was started
	err    error
}

func (l *lazyServer) get() (*localpg.Server, error) {
	l.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a container's image may have to come first
		defer cancel()
		l.server, l.stop, l.err = start(ctx)
	})
	return l.server, l.err
}

func (l *lazyServer) close() error {
	if l.stop == nil {
		return nil
	}
	return l.stop()
}

func start(ctx context.Context) (*localpg.Server, func() error, error) {
	server, err := localpg.Start(ctx, localpg.Options{Settings: serverSettings()})
	if err == nil {
		return server, server.Stop, nil
	}
	if !errors.Is(err, localpg.ErrNone) {
		return nil, nil, err
	}
	server, stop, containerErr := startContainer(ctx)
	if containerErr != nil {
		return nil, nil, fmt.Errorf("%w; nor is there Docker: %w", err, containerErr)
	}
	return server, stop, nil
}
