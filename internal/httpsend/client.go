package httpsend

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// NewTransport returns a transport for senders. Whoever needs another dialer sets DialContext before the first call.
//
// It asks no proxy, also not the one of the environment: a dialer that checks addresses must see the destination. It
// speaks HTTP/1.1 only, so that a connection that breaks costs one message and not all that share it.
func NewTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    64,               // as many as a busy channel sends at once: a lower one closes and dials at every call
		IdleConnTimeout:        30 * time.Second, // servers use 60 s and more: one that they just closed looks uncertain
		MaxResponseHeaderBytes: maxBody,
		DisableCompression:     true,
		Protocols:              &protocols,
	}
}

// Client returns what Post should use for a client that a user gave, nil for none: a copy that follows no redirect, with a
// NewTransport if it has no transport of its own. Idle connections close by themselves.
func Client(given *http.Client) *http.Client {
	var c http.Client
	if given != nil {
		c = *given
	}
	if c.Transport == nil {
		c.Transport = NewTransport()
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// BaseURL returns raw, or byDefault if raw is empty, without the slashes at its end. One that is not an absolute http or
// https address, or has more than a path after its host, gives an error that wraps outbox.ErrInvalidOptions.
func BaseURL(raw, byDefault string) (string, error) {
	if raw == "" {
		raw = byDefault
	}
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" ||
		u.User != nil || strings.ContainsAny(raw, "?#") {
		return "", &outbox.OptionError{Field: "BaseURL", Reason: "must be like " + byDefault}
	}
	return strings.TrimRight(raw, "/"), nil
}
