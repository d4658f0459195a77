package main

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// masked is a destination by which those who know it may recognise it, and nobody can write to it.
func masked(destination string) string {
	if i := strings.LastIndexByte(destination, '@'); i > 0 && !strings.Contains(destination, "://") {
		_, first := utf8.DecodeRuneInString(destination)
		return destination[:first] + "***" + destination[i:]
	}
	if u, err := url.Parse(destination); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Hostname() + "/***"
	}
	runes := []rune(destination)
	if len(runes) < 8 {
		return "***"
	}
	return string(runes[:3]) + "***" + string(runes[len(runes)-2:])
}

// printable is what a terminal may get of data: a message can hold control sequences.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
