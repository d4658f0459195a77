// Command relay sends the messages of outbox tables, builds such tables and looks after them. relay help says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	a := &app{env: os.LookupEnv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	a.ctx = a.untilSignal()
	os.Exit(a.main(os.Args[1:]))
}

// untilSignal is a context that ends with the first signal. The second ends the process at once, and the log says so if there
// is one; with no handler left, a third would end it even while that is written.
func (a *app) untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // a second that follows closely is not lost
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		second := <-signals
		signal.Stop(signals)
		if log := a.log.Load(); log != nil {
			log.Warn("second signal, ending at once: what was being sent is sent again when its lease ends")
		}
		die(second)
	}()
	return ctx
}

// die ends the process by a signal that it no longer handles, so that whoever waits for it sees the signal. Where a process
// cannot send itself one, or ignores it, it exits.
func die(s os.Signal) {
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(s) == nil {
		time.Sleep(10 * time.Second) // on a machine that is loaded it takes a moment to arrive
	}
	os.Exit(1)
}
