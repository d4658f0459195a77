package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Endpoint is a receiver of webhooks.
type Endpoint struct {
	// URL is where it listens. Empty means that it stands in the message's Destination.
	URL string
	// Secrets sign: "whsec_" and the base64 of 24 to 64 random bytes, the prefix may be missing, which the receiver knows
	// too (signature v1); or "whsk_" and the base64 of an ed25519 private key, its seed of 32 bytes with or without the public
	// key behind it, of which the receiver has the public key only (signature v1a). While a secret is replaced both are here,
	// and the receiver accepts either. A secret belongs to one endpoint and no other.
	Secrets []string
	// Permanent are statuses, 300 to 599, by which this receiver refuses a message for good, such as 422. Usually none.
	Permanent []int
}

// Format prints how many secrets there are, so that a log of an endpoint holds none; a URL, too, is often known to two only.
func (e Endpoint) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "webhook.Endpoint{%d secrets}", len(e.Secrets))
}

// Options are what a Sender can do without.
type Options struct {
	// Timeout bounds one attempt, at least 1 ms. Zero means 30 s. The context of Send may end it sooner.
	Timeout time.Duration
	// Gone is called when an endpoint answers 410: it wants no more webhooks, so find should not find it any more. It is
	// called before Send returns, must return soon, and may be called again for messages that are on their way. Nil means
	// that nobody is told.
	Gone func(ctx context.Context, m transporte.Message)
	// Allow are networks that may be called though they are not public, such as a private one. Not for loopback.
	Allow []netip.Prefix
	// Ports may be called besides 443, and 80 with AllowHTTP.
	Ports []uint16
	// AllowHTTP allows addresses with http, whose bodies anybody on the way can read.
	AllowHTTP bool
	// Development allows this host's loopback addresses, http and every port. Never where customers choose the addresses.
	Development bool
	// TLSConfig is for a private certificate authority. Nil trusts the system's.
	TLSConfig *tls.Config
	// Resolver looks names up. Nil means net.DefaultResolver.
	Resolver *net.Resolver
	// Client makes the calls in place of our own, and then nothing here checks the addresses: it is for a proxy that does,
	// such as https://github.com/stripe/smokescreen. It follows no redirect, whatever it says. Nil means our own.
	Client *http.Client
}

func (o Options) timeout() time.Duration { return cmp.Or(o.Timeout, 30*time.Second) }

func (o Options) check() error {
	switch {
	case o.timeout() < time.Millisecond:
		return invalid("Timeout", "must be at least 1 ms")
	case slices.ContainsFunc(o.Allow, func(p netip.Prefix) bool { return !p.IsValid() || p.Overlaps(loopback4) || p.Overlaps(loopback6) }):
		return invalid("Allow", "must hold valid prefixes without loopback, for which there is development mode")
	case slices.Contains(o.Ports, 0):
		return invalid("Ports", "must not contain 0")
	case o.Client != nil && (o.TLSConfig != nil || o.Resolver != nil || len(o.Allow) > 0):
		return invalid("Client", "must not come with Allow, TLSConfig or Resolver, which are for our own client")
	}
	return nil
}

func invalid(field, reason string) error {
	return &outbox.OptionError{Field: "webhook.New: " + field, Reason: reason}
}
