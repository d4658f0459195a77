// Command relay sends the messages of outbox tables, builds such tables and looks after them. relay help says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(command(untilSignal(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// untilSignal is a context that ends with the first signal. From then on a signal ends the process at once: the handler is
// taken away before the context ends, or a second signal that follows closely would be swallowed.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan os.Signal, 1)
	signal.Notify(first, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-first
		signal.Stop(first)
		cancel()
	}()
	return ctx
}
