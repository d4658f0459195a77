package config

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mask stands in output for what is secret.
const mask = "***"

// Secret prints as three stars. In the file and elsewhere it may be given as file:/path, whose content it then is.
type Secret string

// Format writes three stars, or nothing if s is empty, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.masked()) }

func (s Secret) masked() string {
	if s == "" {
		return ""
	}
	return mask
}

// DSN is a connection string, which prints without its passwords. It may be given as file:/path, too.
type DSN string

// Format writes d without passwords, whatever the verb.
func (d DSN) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, d.masked()) }

var (
	// pairs is how a keyword/value string begins.
	pairs = regexp.MustCompile(`^\s*\w+\s*=`)
	// passwords are the pairs that hold one.
	passwords = regexp.MustCompile(`(?i)\b((?:ssl)?password)\s*=\s*(?:'(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)+)`)
)

func (d DSN) masked() string {
	s := string(d)
	if pairs.MatchString(s) {
		return passwords.ReplaceAllString(s, "$1="+mask)
	}
	u, err := url.Parse(s)
	switch {
	case s == "":
		return ""
	case err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql": // the driver takes neither
		return mask
	}
	user := ""
	if u.User != nil {
		user = url.User(u.User.Username()).String()
		if _, has := u.User.Password(); has {
			user += ":" + mask
		}
		user += "@"
	}
	query := u.Query()
	for name := range query {
		if strings.HasSuffix(strings.ToLower(name), "password") {
			query.Del(name)
		}
	}
	rest := u.EscapedPath()
	if len(query) > 0 {
		rest += "?" + query.Encode()
	}
	return u.Scheme + "://" + user + u.Host + rest
}

// URL is an address that may hold a password or a key, and prints without them.
type URL string

// Format writes u without what may be secret, whatever the verb.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.masked()) }

func (u URL) masked() string {
	parsed, err := url.Parse(string(u))
	if err != nil {
		return mask
	}
	user := ""
	if parsed.User != nil {
		parsed.User, user = nil, mask+"@"
	}
	if parsed.RawQuery != "" {
		parsed.RawQuery = mask
	}
	return strings.Replace(parsed.String(), "//", "//"+user, 1)
}

// Path is a file or a folder. A relative one in the file begins at the file's own folder.
type Path string

// Duration is a time.Duration that may also be a number of days: 30d.
type Duration time.Duration

// Std is d as the library takes it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String is days if it is whole ones, otherwise as time.Duration without zeros at its end.
func (d Duration) String() string {
	const day = Duration(24 * time.Hour)
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// UnmarshalText reads 250ms, 1h30m, 30d.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && -100*366 <= n && n <= 100*366 {
			*d = Duration(n) * Duration(24*time.Hour)
			return nil
		}
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("must be a time such as 500ms, 30s, 10m, 2h or 30d")
	}
	*d = Duration(v)
	return nil
}
