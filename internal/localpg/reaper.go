package localpg

import (
	_ "embed"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

//go:embed reaper.sh
var reaperScript string

// reaper is a shell that cleans up when this process ends, also where no deferred call runs: os.Exit, a panic in some
// goroutine, a test's timeout, SIGKILL. (Linux could signal the server alone with Pdeathsig, but that is bound to a
// thread, leaves the folder in memory, and has no like elsewhere.)
type reaper struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startReaper(attr *syscall.SysProcAttr, folders []string) (*reaper, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", reaperScript, "reaper"}, folders...)...)
	cmd.SysProcAttr = attr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the shell that cleans up: %w", err)
	}
	return &reaper{cmd: cmd, stdin: stdin}, nil
}

// removeFolders is for when the server is down.
func (r *reaper) removeFolders() error {
	if _, err := io.WriteString(r.stdin, "down\n"); err != nil {
		return fmt.Errorf("tell the shell that cleans up: %w", err)
	}
	r.stdin.Close()
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("remove the server's folder: %w", err)
	}
	return nil
}
