package httpsend_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/httpsend/sendertest"
	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestMain(m *testing.M) { sendertest.Main(m) }

// post is a sender with nothing of its own.
func post(ctx context.Context, client *http.Client, baseURL string) (string, error) {
	answer, err := httpsend.Post(ctx, client, baseURL+"/x", http.Header{"Content-Type": {"text/plain"}}, []byte("hola"))
	if err != nil || answer.OK() {
		return "", err
	}
	return "", httpsend.Table{
		{Status: "429", Category: outbox.Limit},
		{Status: "5xx", Category: outbox.Network, Uncertain: true},
	}.Error(answer, "", "")
}

func TestPostWithoutAnAnswer(t *testing.T) { t.Parallel(); sendertest.Outages(t, post) }

func TestPostWithAnOddAnswer(t *testing.T) { t.Parallel(); sendertest.OddAnswers(t, post) }

func TestPostIsAskedToWait(t *testing.T) { t.Parallel(); sendertest.Waits(t, post) }

func TestPostSendsHeaderAndBodyAsTheyAre(t *testing.T) {
	t.Parallel()
	var got http.Header
	var body []byte
	s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "created")
	})
	header := http.Header{"User-Agent": {"outbox-relay"}, "X-Key": {"a\tb"}}
	answer, err := httpsend.Post(t.Context(), httpsend.Client(nil), s.URL, header, []byte("{\"a\": 1}\n"))
	if err != nil || answer.Status != 201 || answer.Header.Get("X-Answer") != "yes" || string(answer.Body) != "created" {
		t.Errorf("got %+v, %v", answer, err)
	}
	if string(body) != "{\"a\": 1}\n" || len(got) != 3 || got.Get("User-Agent") != "outbox-relay" ||
		got.Get("X-Key") != "a\tb" || got.Get("Content-Length") != "9" {
		t.Errorf("the server got %v, %q", got, body)
	}
}

func TestPostRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		url    string
		header http.Header
	}{
		{"http://club.example/\n", nil},
		{"http://[club.example", nil},
		{"http://club.example", http.Header{"X": {"a\nb"}}},
		{"http://club.example", http.Header{"X": {"fine", "a\x00"}}},
		{"http://club.example", http.Header{"X Y": {"a"}}},
		{"http://club.example", http.Header{"Ñ": {"a"}}},
		{"http://club.example", http.Header{"": {"a"}}},
	}
	for _, test := range tests {
		_, err := httpsend.Post(t.Context(), httpsend.Client(nil), test.url, test.header, nil)
		sendertest.Want(t, err, transporte.Error{Category: outbox.Rejected, Code: "peticion_invalida"})
	}
}

func TestPostWithoutADeadlineGetsAMinute(t *testing.T) {
	t.Parallel()
	var left time.Duration
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		deadline, _ := r.Context().Deadline()
		left = time.Until(deadline)
		return nil, errors.New("no")
	})}
	_, _ = httpsend.Post(context.Background(), client, "http://club.example", nil, nil)
	if left <= 0 || left > time.Minute {
		t.Errorf("got %v, want a minute", left)
	}
}

func TestPostReadsAtMost64KiB(t *testing.T) {
	t.Parallel()
	for size, drained := range map[int]bool{64 << 10: true, 100 << 10: true, 10 << 20: false} { // as much again is drained
		var dialled atomic.Int64
		s := sendertest.Server(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("a", size))
		})
		transport := httpsend.NewTransport()
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return dial(ctx, network, address)
		}
		client := httpsend.Client(&http.Client{Transport: transport})
		const posts = 5
		for range posts {
			answer, err := httpsend.Post(t.Context(), client, s.URL, nil, nil)
			if err != nil || len(answer.Body) != 64<<10 {
				t.Errorf("size %d: got %d bytes, %v, want 64 KiB", size, len(answer.Body), err)
			}
		}
		if n := dialled.Load(); n > posts || drained != (n < posts) { // on a busy machine net/http may give one up now and then
			t.Errorf("size %d: got %d connections for %d posts, want them used again: %v", size, n, posts, drained)
		}
		client.CloseIdleConnections()
	}
}

// Otherwise the destination could hold on to it for as long as the caller's context lives.
func TestPostClosesAConnectionThatHasTooMuchToSay(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	s := sendertest.Server(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(closed)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("a", 1<<10))
		}
	})
	attempt := sendertest.NewAttempt()
	if _, err := httpsend.Post(attempt, httpsend.Client(nil), s.URL, nil, nil); err != nil {
		t.Fatal(err)
	}
	defer attempt.Expire()
	waitfor.True(t, "the connection is closed", func() bool {
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
}

func TestPostEndsInTimeWhenAByteComesEachSecond(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, atOnce string
		want         *transporte.Error // nil: an answer
	}{
		{"of the status", "", &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}},
		{"of the header", "HTTP/1.1 200 OK\r\nX: ", &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}},
		{"of the body", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", nil},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			var dripping sync.WaitGroup
			defer dripping.Wait()
			transport := httpsend.NewTransport()
			transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				dripping.Go(func() { dripSeconds(theirs, test.atOnce) })
				return ours, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			begun := time.Now()
			answer, err := httpsend.Post(ctx, &http.Client{Transport: transport}, "http://club.example", nil, []byte("hola"))
			if took := time.Since(begun); took != 30*time.Second {
				t.Errorf("a byte %s each second: it took %v, want 30 s", test.name, took)
			}
			if test.want != nil {
				sendertest.Want(t, err, *test.want)
			} else if err != nil || !answer.OK() || len(answer.Body) < 29 {
				t.Errorf("a byte %s each second: got %+v, %v, want what came of the answer", test.name, answer, err)
			}
		})
	}
}

// dripSeconds reads a request and answers a byte each second, but for the beginning.
func dripSeconds(c net.Conn, atOnce string) {
	defer c.Close()
	if r, err := http.ReadRequest(bufio.NewReader(c)); err != nil || r.ContentLength != 4 {
		return
	}
	drip := "1"
	if atOnce == "" {
		drip = "HTTP/1.1 200 OK\r\nX: 1111111111111"
	}
	_, err := io.WriteString(c, atOnce)
	for i := 0; err == nil; i = (i + 1) % len(drip) {
		time.Sleep(time.Second)
		_, err = io.WriteString(c, drip[i:i+1])
	}
}

func TestPostIsUncertainWhenTimeEndsWithinTheRequest(t *testing.T) {
	t.Parallel()
	attempt, returned := sendertest.NewAttempt(), make(chan struct{})
	s := sendertest.Server(t, func(http.ResponseWriter, *http.Request) { attempt.Expire(); <-returned })
	body := make([]byte, 32<<20) // more than the kernel takes while nobody reads
	_, err := httpsend.Post(attempt, httpsend.Client(nil), s.URL, nil, body)
	close(returned)
	sendertest.Want(t, err, transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true})
}

// A request with an Idempotency-Key goes out once more when a connection that was used before breaks. What was written
// the first time may have arrived, even if the second dial fails.
func TestPostStaysUncertainWhenARepetitionCannotConnect(t *testing.T) {
	t.Parallel()
	var kept atomic.Bool // the connection, for another request
	var refused atomic.Int64
	s := sendertest.Server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if kept.Load() {
			panic(http.ErrAbortHandler)
		}
	})
	transport := httpsend.NewTransport()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if kept.Load() {
			refused.Add(1)
			return nil, errors.New("refused")
		}
		return dial(ctx, network, address)
	}
	client := httpsend.Client(&http.Client{Transport: transport})
	header := http.Header{"Idempotency-Key": {"k"}}
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(err error) { kept.Store(err == nil) }})
	for range 100 { // on a busy machine net/http may give a connection up
		if _, err := httpsend.Post(traced, client, s.URL, header, []byte("hola")); err != nil {
			t.Fatal(err)
		}
		if kept.Load() {
			break
		}
	}
	_, err := httpsend.Post(t.Context(), client, s.URL, header, []byte("hola"))
	if refused.Load() != 1 {
		t.Fatalf("got %d dials refused, want a repetition", refused.Load())
	}
	if failed := sendertest.Failure(t, err); !failed.Uncertain {
		t.Errorf("got %+v, want it uncertain", failed)
	}
}

func TestPostTellsANameThatDoesNotResolve(t *testing.T) {
	t.Parallel()
	noServer := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	transport := httpsend.NewTransport()
	transport.DialContext = (&net.Dialer{Resolver: noServer}).DialContext
	_, err := httpsend.Post(t.Context(), &http.Client{Transport: transport}, "http://club.example", nil, nil)
	sendertest.Want(t, err, transporte.Error{Category: outbox.Network, Code: "dns"})
}

func TestPostTellsAHostWhereNobodyListens(t *testing.T) {
	t.Parallel()
	_, port, _ := strings.Cut(sendertest.Refusing(t), ":")
	_, err := httpsend.Post(t.Context(), httpsend.Client(nil), "http://localhost:"+port, nil, nil)
	sendertest.Want(t, err, transporte.Error{Category: outbox.Network, Code: "conexion"})
}

func TestPostReturnsADialersOwnError(t *testing.T) {
	t.Parallel()
	want := transporte.Error{Category: outbox.Rejected, Code: "direccion_prohibida"}
	transport := httpsend.NewTransport()
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, &want }
	_, err := httpsend.Post(t.Context(), &http.Client{Transport: transport}, "http://club.example", nil, nil)
	sendertest.Want(t, err, want)
}

func TestPostKeepsToTheTimeoutOfTheClient(t *testing.T) {
	t.Parallel()
	s := sendertest.Server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	client := httpsend.Client(&http.Client{Timeout: 50 * time.Millisecond})
	_, err := httpsend.Post(t.Context(), client, s.URL, nil, []byte("hola"))
	if failed := sendertest.Failure(t, err); failed.Category != outbox.Network || failed.Code != "timeout" {
		t.Errorf("got %+v, want red/timeout", failed)
	}
}

func TestIDsAreShortAndPrintable(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"wamid.HBgN=": true, strings.Repeat("a", 256): true,
		"": false, strings.Repeat("a", 257): false, "a\x00": false, "ñ": false, "a\n": false,
	}
	for id, kept := range tests {
		if got := httpsend.ID(id); (got == id) != kept && id != "" || got != "" && got != id {
			t.Errorf("%q: got %q, want it kept: %v", id, got, kept)
		}
	}
}
