package webhook

import (
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

var (
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")
	loopback6 = netip.MustParsePrefix("::1/128")
	// public6 is where IPv6 has public addresses at all (RFC 4291, 2.4).
	public6 = netip.MustParsePrefix("2000::/3")
)

// special are the networks of the IANA special-purpose registries (RFC 6890 and its successors), and multicast. The
// helpers of netip know half of them. What is not in public6 need not be here, and is for the reader.
var special = []struct{ prefix, what string }{
	{"0.0.0.0/8", "this network"},
	{"10.0.0.0/8", "private"},
	{"100.64.0.0/10", "carrier-grade NAT; the metadata service of some clouds"},
	{"127.0.0.0/8", "loopback"},
	{"169.254.0.0/16", "link-local; the metadata service of most clouds"},
	{"172.16.0.0/12", "private"},
	{"192.0.0.0/24", "protocol assignments"},
	{"192.0.2.0/24", "documentation"},
	{"192.88.99.0/24", "6to4 relays"},
	{"192.168.0.0/16", "private"},
	{"198.18.0.0/15", "benchmarks"},
	{"198.51.100.0/24", "documentation"},
	{"203.0.113.0/24", "documentation"},
	{"224.0.0.0/4", "multicast"},
	{"240.0.0.0/4", "reserved, and broadcast"},
	{"::/96", "unspecified, loopback, IPv4 in old dress"},
	{"::ffff:0:0:0/96", "IPv4 translated"},
	{"64:ff9b::/96", "NAT64"},
	{"64:ff9b:1::/48", "NAT64, local"},
	{"100::/64", "discard"},
	{"2001::/23", "protocol assignments, Teredo, benchmarks"},
	{"2001:db8::/32", "documentation"},
	{"2002::/16", "6to4"},
	{"3fff::/20", "documentation"},
	{"5f00::/16", "segment routing"},
	{"fc00::/7", "unique local; a metadata service"},
	{"fe80::/10", "link-local"},
	{"fec0::/10", "site-local"},
	{"ff00::/8", "multicast"},
}

var blocked = func() (prefixes []netip.Prefix) {
	for _, s := range special {
		prefixes = append(prefixes, netip.MustParsePrefix(s.prefix))
	}
	return prefixes
}()

// guard says which addresses may be called.
type guard struct {
	allow    []netip.Prefix
	loopback bool
}

// dialer checks each address that it is about to connect to. Resolving first and dialling later would let a name answer
// differently the second time.
func (g guard) dialer(resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{
		Timeout:   10 * time.Second,
		KeepAlive: 30 * time.Second,
		Resolver:  resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			if a, err := netip.ParseAddrPort(address); err == nil && g.allows(a.Addr()) {
				return nil
			}
			return &transporte.Error{Category: outbox.Rejected, Code: "destino_bloqueado"}
		},
	}
}

func (g guard) allows(a netip.Addr) bool {
	a = a.Unmap() // with a zone it is in no prefix, and so not public
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case a.IsLoopback():
		return g.loopback
	case slices.ContainsFunc(g.allow, contains):
		return true
	}
	return (a.Is4() || public6.Contains(a)) && !slices.ContainsFunc(blocked, contains)
}
