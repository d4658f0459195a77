package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a running postmaster.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // how it ended; read it after ended is closed
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// shutdown ends sessions, writes a checkpoint and waits for the end.
func (p *process) shutdown(ctx context.Context) error {
	return p.signal(ctx, syscall.SIGINT)
}

// kill ends the server without a checkpoint. A postmaster gives its children five seconds before it kills them.
func (p *process) kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := p.signal(ctx, syscall.SIGQUIT)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return p.signal(context.Background(), syscall.SIGKILL)
}

func (p *process) signal(ctx context.Context, sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to postgres: %w", sig, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("postgres has not ended after %v: %w", sig, ctx.Err())
	}
}
