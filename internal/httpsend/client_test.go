package httpsend_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A redirect would carry the credentials elsewhere, and 307 and 308 the message too.
func TestClientFollowsNoRedirectWhateverTheUsersClientSays(t *testing.T) {
	t.Parallel()
	elsewhere := sendertest.Server(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		given := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
		answer, err := httpsend.Post(t.Context(), httpsend.Client(given), s.URL, nil, []byte("hola"))
		if err != nil || answer.Status != status {
			t.Errorf("got %d, %v, want %d", answer.Status, err, status)
		}
	}
}

func TestTransportDialsTheDestinationAndNotTheProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.example:3128")
	t.Setenv("http_proxy", "http://proxy.example:3128")
	var dialled string
	transport := httpsend.NewTransport()
	transport.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = address
		return nil, errors.New("no")
	}
	_, _ = httpsend.Post(t.Context(), &http.Client{Transport: transport}, "http://club.example", nil, nil)
	if dialled != "club.example:80" {
		t.Errorf("got %s, want club.example:80", dialled)
	}
}

func TestClientKeepsWhatTheUserGave(t *testing.T) {
	t.Parallel()
	called := false
	given := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		called = true
		return nil, errors.New("no")
	})}
	_, _ = httpsend.Post(t.Context(), httpsend.Client(given), "http://club.example", nil, nil)
	if !called {
		t.Error("the user's transport was not called")
	}
	if given.CheckRedirect != nil {
		t.Error("the user's client was changed")
	}
}

// A client with cookies adds them to the header.
func TestPostLeavesTheCallersHeaderAlone(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client, header := httpsend.Client(&http.Client{Jar: jar}), http.Header{"X": {"1"}}
	for range 2 {
		if _, err := httpsend.Post(t.Context(), client, s.URL, header, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(header) != 1 {
		t.Errorf("got %v, want it as it was", header)
	}
}

func TestBaseURLIsAnAddressWithoutATail(t *testing.T) {
	t.Parallel()
	const byDefault = "https://api.club.example/v1"
	tests := map[string]string{ // want; empty: an error
		"":                              byDefault,
		"https://api.example":           "https://api.example",
		"http://127.0.0.1:8080/meta//":  "http://127.0.0.1:8080/meta",
		"api.example":                   "",
		"/v1":                           "",
		"ftp://api.example":             "",
		"https://":                      "",
		"https://:443":                  "",
		"https://user:key@api.example":  "",
		"https://api.example/v1?key=1":  "",
		"https://api.example/v1#emails": "",
		"https://api.example/\n":        "",
	}
	for raw, want := range tests {
		got, err := httpsend.BaseURL(raw, byDefault)
		if want != "" && (got != want || err != nil) {
			t.Errorf("%q: got %q, %v, want %q", raw, got, err, want)
		}
		if want == "" && (!errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), byDefault) ||
			strings.Contains(err.Error(), "key")) {
			t.Errorf("%q: got %q, %v, want ErrInvalidOptions that shows the default and not the address", raw, got, err)
		}
	}
}

func TestPrintableIsWhatArrivesAsItIs(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"re_123": true, "a b~!": true,
		"": false, " ": false, "a ": false, " a": false, "a\n": false, "a\tb": false, "a\x7f": false, "ñ": false, "a\xff": false,
	}
	for s, want := range tests {
		if got := httpsend.Printable(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestValidKeyIsPrintableInOneWord(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"re_123~!": true, "": false, "a b": false, "a\nb": false, "a\n": false, "ñ": false} {
		if got := httpsend.ValidKey(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}

func TestFitKeyKeepsWhatFitsAndHashesTheRest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 256)
	tests := []struct{ key, want string }{
		{"", ""},
		{"t1:turno 7", "t1:turno 7"},
		{long, long},
		{long + "a", "e8d95cc2b4bc198c54b40bd214df958afb65f5e73d2c2eafe0593cf5c635c1f0"},
		{"t1:ñandú", "8ba6e9c4c1e58154d32c043bc8e27ced3d4b427b3fa92e9af0dcbaca4bda993a"},
		{"a\nb", "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78"},
		{"a ", "6583dcd6056fd32aadd0d2d0be920de99f6ff08b80065e4b9142aaa4169391cb"},
	}
	for _, test := range tests {
		if got := httpsend.FitKey(test.key, 256); got != test.want {
			t.Errorf("%q: got %q, want %q", test.key, got, test.want)
		}
	}
}

func FuzzFitKeyFitsAndTellsKeysApart(f *testing.F) {
	f.Add("t1:a", "t1:a ")
	f.Add(strings.Repeat("a", 300), strings.Repeat("a", 301))
	f.Add("t1:ñ", "t1:n")
	f.Fuzz(func(t *testing.T, a, b string) {
		fa, fb := httpsend.FitKey(a, 256), httpsend.FitKey(b, 256)
		if len(fa) > 256 || (a != "" && !httpsend.Printable(fa)) {
			t.Errorf("%q became %q", a, fa)
		}
		if (a == b) != (fa == fb) {
			t.Errorf("%q and %q became %q and %q", a, b, fa, fb)
		}
	})
}
