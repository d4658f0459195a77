package webhook

import "net/netip"

var (
	Answers         = answers
	ParseSecret     = parseSecret
	ParsePrivateKey = parsePrivateKey
	ValidParent     = validParent
)

// SpecialNetworks returns the networks that are never called.
func SpecialNetworks() []netip.Prefix { return blocked }

// Allows tells whether a Sender with these options may call a.
func Allows(opts Options, a netip.Addr) bool { return guard{opts.Allow, opts.Development}.allows(a) }

// Target checks a URL.
func (s *Sender) Target(raw string) (string, error) { return s.target(raw) }
