package webhook

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// target checks what can be told of an endpoint's URL without asking for its address.
func (s *Sender) target(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || !validHost(u.Hostname()) || !s.allowsScheme(u.Scheme) {
		return "", &transporte.Error{Category: outbox.Rejected, Code: "url_invalida"}
	}
	if !s.allowsPort(u.Scheme, u.Port()) {
		return "", &transporte.Error{Category: outbox.Rejected, Code: "puerto_bloqueado"}
	}
	return raw, nil
}

// CheckURL gives an outbox.OptionError if Send would refuse an endpoint's URL before it asks for the address.
func (s *Sender) CheckURL(raw string) error {
	if _, err := s.target(raw); err != nil {
		return &outbox.OptionError{Field: "Endpoint.URL", Reason: "must be like https://example.com/webhooks, without a user; http and other ports must be allowed"}
	}
	return nil
}

func (s *Sender) allowsScheme(scheme string) bool {
	return scheme == "https" || scheme == "http" && (s.opts.AllowHTTP || s.opts.Development)
}

func (s *Sender) allowsPort(scheme, port string) bool {
	if s.opts.Development || port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && slices.Contains(s.opts.Ports, uint16(n))
}

// validHost tells whether host is a name or an address as everybody writes it. What ends in a number is an address, which
// some resolvers read in ways of their own: 2130706433, 0x7f.1 and 127.1 are 127.0.0.1 to them.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	name := strings.TrimSuffix(host, ".")
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	hex, isHex := strings.CutPrefix(last, "0x")
	number := strings.Trim(last, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
	return !number // also if it is empty
}
