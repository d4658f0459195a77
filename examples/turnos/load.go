package main

import (
	"context"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed bookings.csv
var bookingsCSV string

// readBookings reads the columns tenant, booking, name, phone, email, starts, template and reminder below a header.
func readBookings(text string) ([]Booking, error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("bookings.csv: %w", err)
	}
	var bookings []Booking
	for i, r := range records[1:] {
		starts, err := time.Parse("2006-01-02 15:04", r[5])
		if err != nil {
			return nil, fmt.Errorf("bookings.csv: line %d: starts is not a time like 2026-12-07 09:30", i+2)
		}
		bookings = append(bookings, Booking{
			Tenant: r[0], ID: r[1], Name: r[2], Phone: r[3], Email: r[4], Starts: starts, Template: r[6], Reminder: r[7],
		})
	}
	return bookings, nil
}

// load is how bookings come in.
type load struct {
	bookings []Booking
	pause    time.Duration // from one to the next, on average
	remindIn time.Duration // from a booking to its reminder; a day before the appointment would be long for a demo
}

// run books one after the other. Each pause is half to one and a half of the average, in the same order every time, so
// that bookings and reminders do not keep step with each other.
func (l load) run(ctx context.Context, pool *pgxpool.Pool, j *journal) error {
	random := rand.New(rand.NewPCG(1, 2))
	next := time.Now()
	for _, b := range l.bookings {
		next = next.Add(l.pause/2 + time.Duration(random.Int64N(int64(l.pause))))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(next)):
		}
		b.RemindAt = time.Now().Add(l.remindIn)
		created, err := Book(j.expect(ctx, b), pool, table, b)
		if err != nil {
			return err
		}
		if created {
			j.enqueue(b)
		} else {
			j.duplicate()
		}
	}
	return nil
}
