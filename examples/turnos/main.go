// Command turnos is an appointment service that embeds a relay: each booking is written in one transaction together with
// its WhatsApp confirmation and its reminder, and both leave by themselves.
//
// What to copy is in three files:
//
//	booking.go   enqueue messages in the transaction that causes them
//	senders.go   hand them to a provider, and say what its answer means
//	service.go   build the tables, run the relay
//
// The rest makes a demo of it. bookings.csv and load.go are the customers; provider.go is a provider that now and then
// answers 429, 500 or nothing at all; commit.go, journal.go, line.go and report.go measure and show what happens; demo.go
// runs it all, first with the relay and then with a poll every second.
//
//	go run ./examples/turnos
//
// It needs a Postgres: the one of DATABASE_URL, in which it makes two databases and drops them again, or else installed
// programs, from which it starts one of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/localpg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	if err := run(ctx, os.Stdout); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run gives the demo a Postgres that waits for its disk as one in production does, and leaves nothing behind.
func run(ctx context.Context, out io.Writer) (err error) {
	bookings, err := readBookings(bookingsCSV)
	if err != nil {
		return err
	}
	server, err := localpg.Start(ctx, localpg.Options{Durable: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	woken, dropWoken, err := server.CreateDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dropWoken(context.WithoutCancel(ctx))) }()
	polled, dropPolled, err := server.CreateDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dropPolled(context.WithoutCancel(ctx))) }()
	return demo(ctx, woken, polled, load{bookings: bookings, pause: 25 * time.Millisecond, remindIn: 3 * time.Second}, out)
}
