// Package plural counts things for people.
package plural

import "fmt"

// Of is a number with a noun: 1 message, 2 messages.
func Of[N int | int64](n N, noun string) string { return fmt.Sprint(n, " ", noun) + Pick(n, "", "s") }

// Pick is one of two words by the number that they stand with: is, are.
func Pick[N int | int64](n N, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
