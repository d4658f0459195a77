package webhook_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte/webhook"
)

// inner are addresses that customers must not make us call, and what they are.
var inner = map[string]string{
	"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "0.0.0.0": "unspecified", "::": "unspecified",
	"0.1.2.3": "this network", "10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private",
	"192.168.1.1": "private", "169.254.169.254": "metadata", "169.254.0.1": "link-local", "100.64.0.1": "CGNAT",
	"100.100.100.200": "metadata", "192.0.0.192": "metadata", "192.0.2.1": "documentation", "198.18.0.1": "benchmark",
	"198.19.255.255": "benchmark", "198.51.100.1": "documentation", "203.0.113.1": "documentation", "192.88.99.1": "6to4 relay",
	"224.0.0.1": "multicast", "239.255.255.255": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "broadcast",
	"::ffff:127.0.0.1": "mapped loopback", "::ffff:10.0.0.1": "mapped private", "::ffff:169.254.169.254": "mapped metadata",
	"::ffff:0:127.0.0.1": "translated", "::127.0.0.1": "compatible", "64:ff9b::127.0.0.1": "NAT64", "64:ff9b::a00:1": "NAT64",
	"64:ff9b:1::a00:1": "local NAT64", "100::1": "discard", "2001::1": "Teredo", "2001:2::1": "benchmark",
	"2001:db8::1": "documentation", "2002:7f00:1::1": "6to4", "2002:ffff::1": "6to4", "3fff::1": "documentation", "5f00::1": "segment routing",
	"fc00::1": "unique local", "fd00:ec2::254": "metadata", "fe80::1": "link-local", "fe80::2%lo": "link-local", "fec0::1": "site-local", "2606:4700::1111%lo": "with a zone",
	"ff02::1": "multicast", "4000::1": "not assigned", "8000::1": "not assigned",
}

func TestAddressesThatAreNotPublicAreNeverCalled(t *testing.T) {
	t.Parallel()
	s := newSender(t, signedBy(secret("a", 24)), webhook.Options{Resolver: noNames(t)})
	for address, what := range inner {
		t.Run(what+" "+address, func(t *testing.T) {
			_, err := s.Send(t.Context(), order("https://"+net.JoinHostPort(strings.Replace(address, "%", "%25", 1), "443")+"/hook"))
			checkFailure(t, err, outbox.Rejected, "destino_bloqueado")
		})
	}
}

func TestTheEdgesOfTheNetworksAreWhereTheyShouldBe(t *testing.T) {
	t.Parallel()
	for address := range inner {
		if webhook.Allows(webhook.Options{}, netip.MustParseAddr(address)) {
			t.Errorf("%s may be called", address)
		}
	}
	for _, address := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.0", "192.167.255.255",
		"192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "203.0.112.0", "223.255.255.255", "::ffff:1.1.1.1",
		"2000::1", "2001:200::1", "2001:db7::1", "2003::1", "2606:4700::1111", "3ffe::1",
	} {
		if !webhook.Allows(webhook.Options{}, netip.MustParseAddr(address)) {
			t.Errorf("%s may not be called, though it is public", address)
		}
	}
}

func TestTheListOfNetworksAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	for _, p := range webhook.SpecialNetworks() {
		if p != p.Masked() {
			t.Errorf("%s is not the beginning of a network", p)
		}
		for _, a := range []netip.Addr{p.Addr(), last(p)} {
			if webhook.Allows(webhook.Options{}, a) {
				t.Errorf("%s of %s may be called", a, p)
			}
		}
	}
}

// last is the last address of p.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestAllowOpensANetworkAndDevelopmentOpensLoopback(t *testing.T) {
	t.Parallel()
	private := webhook.Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	tests := []struct {
		opts    webhook.Options
		address string
		want    bool
	}{
		{private, "10.1.2.3", true}, {private, "::ffff:10.1.2.3", true}, {private, "fd00::1", true},
		{private, "10.2.0.1", false}, {private, "127.0.0.1", false}, {private, "169.254.169.254", false}, {private, "1.1.1.1", true},
		{development, "127.0.0.1", true}, {development, "127.9.9.9", true}, {development, "::1", true},
		{development, "::ffff:127.0.0.1", true}, {development, "10.1.2.3", false}, {development, "169.254.169.254", false},
	}
	for _, test := range tests {
		if got := webhook.Allows(test.opts, netip.MustParseAddr(test.address)); got != test.want {
			t.Errorf("%+v: got %v for %s, want %v", test.opts, got, test.address, test.want)
		}
	}
}

// A name that is harmless when it is checked and inside when it is dialled.
func TestANameIsCheckedEachTimeItIsDialled(t *testing.T) {
	t.Parallel()
	var received, asked atomic.Int32
	r := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
		received.Add(1)
		w.Header().Set("Connection", "close") // else it is used again, which is as harmless as before
	})
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	opts := development
	opts.Resolver = resolver(func(string) []string {
		if asked.Add(1) <= 2 { // A and AAAA
			return []string{"127.0.0.1"}
		}
		return []string{"10.0.0.1", "fd00:ec2::254"}
	})
	s := newSender(t, signedBy(secret("a", 24)), opts)
	if _, err := s.Send(t.Context(), order("http://club.example:"+port)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Send(t.Context(), order("http://club.example:"+port))
	checkFailure(t, err, outbox.Rejected, "destino_bloqueado")
	if n := received.Load(); n != 1 {
		t.Errorf("got %d webhooks, want 1", n)
	}
}

func TestEveryAddressOfANameIsChecked(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 200)
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	for _, address := range []string{"127.0.0.1", "169.254.169.254", "fd00:ec2::254", "::ffff:127.0.0.1"} {
		var asked atomic.Int32
		opts := webhook.Options{AllowHTTP: true, Ports: []uint16{portNumber(t, port)}, Resolver: resolver(func(string) []string {
			asked.Add(1)
			return []string{"10.0.0.1", address}
		})}
		_, err := newSender(t, signedBy(secret("a", 24)), opts).Send(t.Context(), order("http://club.example:"+port))
		checkFailure(t, err, outbox.Rejected, "destino_bloqueado")
		if asked.Load() == 0 {
			t.Errorf("%s: the name was not looked up", address)
		}
	}
	if n := len(r.webhooks()); n != 0 {
		t.Errorf("got %d webhooks, want none", n)
	}
}

func portNumber(t *testing.T, port string) uint16 {
	t.Helper()
	a, err := netip.ParseAddrPort("127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	return a.Port()
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	inside := newReceiver(t, 200)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{inside.URL, "http://169.254.169.254/latest/meta-data"} {
			s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) })
			_, err := newSender(t, signedBy(secret("a", 24)), development).Send(t.Context(), order(s.URL))
			if failed := sendertest.Failure(t, err); !strings.HasPrefix(failed.Category, "http_30") {
				t.Errorf("%d to %s: got %+v", status, to, *failed)
			}
		}
	}
	if n := len(inside.webhooks()); n != 0 {
		t.Errorf("got %d webhooks at the end of a redirect, want none", n)
	}
}

// Not parallel: it sets the environment.
func TestTheProxyOfTheEnvironmentIsNotAsked(t *testing.T) {
	proxy, r := newReceiver(t, 200), newReceiver(t, 200)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	opts := development
	opts.Resolver = resolver(func(string) []string { return []string{"127.0.0.1"} })
	if _, err := newSender(t, signedBy(secret("a", 24)), opts).Send(t.Context(), order("http://club.example:"+port)); err != nil {
		t.Fatal(err)
	}
	if n, through := len(r.webhooks()), len(proxy.webhooks()); n != 1 || through != 0 {
		t.Errorf("got %d webhooks and %d through the proxy, want 1 and 0", n, through)
	}
}

func TestURLsThatAreNotForAWebhookAreRefusedBeforeAnyLookUp(t *testing.T) {
	t.Parallel()
	strict := webhook.Options{Resolver: noNames(t)}
	withHTTP := webhook.Options{Resolver: noNames(t), AllowHTTP: true, Ports: []uint16{8443}}
	tests := []struct {
		url  string
		opts webhook.Options
		code string
	}{
		{"", strict, "url_invalida"}, {"club.example", strict, "url_invalida"}, {"//club.example", strict, "url_invalida"},
		{"https://", strict, "url_invalida"}, {"https:club.example", strict, "url_invalida"}, {"https:///hook", strict, "url_invalida"},
		{"ftp://club.example", strict, "url_invalida"}, {"file:///etc/passwd", strict, "url_invalida"},
		{"gopher://club.example", withHTTP, "url_invalida"}, {"http://club.example", strict, "url_invalida"},
		{"https://ana:clave@club.example", strict, "url_invalida"}, {"https://ana@club.example", strict, "url_invalida"},
		{"https://club.example\r\n", strict, "url_invalida"}, {" https://club.example", strict, "url_invalida"},
		{"https://2130706433/", strict, "url_invalida"}, {"https://0x7f000001/", strict, "url_invalida"},
		{"https://0x7f.1/", strict, "url_invalida"}, {"https://127.1/", strict, "url_invalida"},
		{"https://017700000001/", strict, "url_invalida"}, {"https://0177.0.0.1/", strict, "url_invalida"},
		{"https://127.0.0.1./", strict, "url_invalida"}, {"https://127.0.0.0x1/", strict, "url_invalida"},
		{"https://./", strict, "url_invalida"}, {"https://127.0.0.0X/", strict, "url_invalida"},
		{"https://club.example:22/", strict, "puerto_bloqueado"}, {"https://club.example:80/", strict, "puerto_bloqueado"},
		{"http://club.example:443/", withHTTP, "puerto_bloqueado"}, {"http://club.example:6379/", withHTTP, "puerto_bloqueado"},
		{"https://club.example:8443/", strict, "puerto_bloqueado"},
	}
	for _, test := range tests {
		t.Run(test.url, func(t *testing.T) {
			s := newSender(t, signedBy(secret("a", 24)), test.opts)
			_, err := s.Send(t.Context(), order(test.url))
			checkFailure(t, err, outbox.Rejected, test.code)
			if err := s.CheckURL(test.url); !errors.Is(err, outbox.ErrInvalidOptions) || strings.Contains(err.Error(), "clave") {
				t.Errorf("CheckURL: got %v, want ErrInvalidOptions without the URL", err)
			}
		})
	}
	for _, good := range []string{
		"https://club.example/", "https://club.example:443/a?b=c", "https://club.example:8443", "http://club.example:80/",
		"https://niños.example/hook", "https://1.club.example", "https://0x.example", "https://[2606:4700::1111]/", "HTTPS://club.example",
	} {
		if got, err := newSender(t, signedBy(secret("a", 24)), withHTTP).Target(good); err != nil || got != good {
			t.Errorf("%s: got %q, %v, want it as it is", good, got, err)
		}
		if err := newSender(t, signedBy(secret("a", 24)), withHTTP).CheckURL(good); err != nil {
			t.Errorf("CheckURL %s: got %v, want nil", good, err)
		}
	}
}

func FuzzAURLThatPassesHasAHostAndNoUser(f *testing.F) {
	for _, u := range []string{"https://club.example/a", "https://ana@club.example", "https://0x7f.1:443", "https://[::1]:1"} {
		f.Add(u)
	}
	s, err := webhook.New(signedBy(secret("a", 24)), webhook.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := s.Target(raw)
		if err != nil {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Hostname() == "" || (u.Port() != "" && u.Port() != "443") {
			t.Errorf("%q passes as %v, %v", raw, u, err)
		}
		if _, err := http.NewRequestWithContext(context.Background(), http.MethodPost, got, nil); err != nil {
			t.Errorf("%q passes, and cannot be called: %v", raw, err)
		}
	})
}
