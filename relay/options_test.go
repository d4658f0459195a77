package relay_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestOptionsOutOfBoundsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts relay.Options
		want []string // in the error; none: valid
	}{
		{opts: relay.Options{}},
		{opts: relay.Options{Batch: 1, Concurrency: 1}},
		{relay.Options{Batch: -1}, []string{"Options.Batch", "at least 1", "got -1"}},
		{relay.Options{Concurrency: -1}, []string{"Options.Concurrency", "at least 1", "got -1"}},
		{opts: relay.Options{Lease: 5 * time.Second}},
		{relay.Options{Lease: 5*time.Second - time.Nanosecond}, []string{"Options.Lease", "at least 5s"}},
		{relay.Options{Lease: -time.Minute}, []string{"Options.Lease", "at least 5s", "got -1m0s"}},
		{opts: relay.Options{Timeout: time.Second}},
		{relay.Options{Timeout: time.Second - 1}, []string{"Options.Timeout", "at least 1s"}},
		{relay.Options{Timeout: -time.Second}, []string{"Options.Timeout", "at least 1s", "got -1s"}},
		{opts: relay.Options{Timeout: 5 * time.Minute}},
		{relay.Options{Timeout: 5*time.Minute + 1}, []string{"Options.Timeout", "at most half the lease (5m0s)"}},
		{opts: relay.Options{Lease: 6 * time.Second, Timeout: 3 * time.Second}},
		{relay.Options{Lease: 6 * time.Second, Timeout: 4 * time.Second}, []string{"Options.Timeout", "at most half the lease (3s)", "got 4s"}},
		{opts: relay.Options{PollInterval: 10 * time.Millisecond}},
		{relay.Options{PollInterval: 10*time.Millisecond - 1}, []string{"Options.PollInterval", "10ms to 15m0s"}},
		{relay.Options{PollInterval: -time.Second}, []string{"Options.PollInterval", "got -1s"}},
		{opts: relay.Options{PollInterval: 15 * time.Minute}},
		{relay.Options{PollInterval: 15*time.Minute + 1}, []string{"Options.PollInterval", "10ms to 15m0s"}},
		{opts: relay.Options{ProbeInterval: 100 * time.Millisecond}},
		{relay.Options{ProbeInterval: 100*time.Millisecond - 1}, []string{"Options.ProbeInterval", "100ms to 30s"}},
		{relay.Options{ProbeInterval: -time.Second}, []string{"Options.ProbeInterval", "got -1s"}},
		{opts: relay.Options{ListenDSN: "host=localhost dbname=turnos"}},
		{relay.Options{ListenDSN: "postgres://relay:s3cr3t@localhost:port/turnos"}, []string{"Options.ListenDSN"}},
		{relay.Options{Backoff: outbox.Backoff{Base: -time.Second}}, []string{"Backoff.Base"}},
		{relay.Options{Backoff: outbox.Backoff{Cap: time.Second}}, []string{"Backoff.Cap"}},
	} {
		err := test.opts.Validate()
		if len(test.want) == 0 {
			if err != nil {
				t.Errorf("%+v: got %v, want valid", test.opts, err)
			}
			continue
		}
		if !errors.Is(err, outbox.ErrInvalidOptions) {
			t.Errorf("%v: got %v, want ErrInvalidOptions", test.want, err)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("got %q, want it to say %q", err, part)
			}
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("got %q, want it without the password", err)
		}
	}
}

func TestWrongUseIsRefusedBeforeTheDatabaseIsAsked(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@localhost/none") // dials on first use
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	good := relay.Senders{"correo": transporte.Func(sent)}
	for name, use := range map[string]struct {
		pool    *pgxpool.Pool
		table   outbox.Table
		senders relay.Senders
		opts    relay.Options
	}{
		"no pool":                  {nil, outbox.Table{}, good, relay.Options{}},
		"an impossible table":      {pool, outbox.Table{Name: strings.Repeat("x", 64)}, good, relay.Options{}},
		"no senders":               {pool, outbox.Table{}, nil, relay.Options{}},
		"a channel without a name": {pool, outbox.Table{}, relay.Senders{"": transporte.Func(sent)}, relay.Options{}},
		"a nil sender":             {pool, outbox.Table{}, relay.Senders{"correo": nil}, relay.Options{}},
		"wrong options":            {pool, outbox.Table{}, good, relay.Options{Batch: -1}},
	} {
		_, once := relay.RunOnce(t.Context(), use.pool, use.table, use.senders, use.opts)
		run := relay.Run(t.Context(), use.pool, use.table, use.senders, use.opts)
		if !errors.Is(once, outbox.ErrInvalidOptions) || !errors.Is(run, outbox.ErrInvalidOptions) {
			t.Errorf("%s: got %v of RunOnce and %v of Run, want ErrInvalidOptions", name, once, run)
		}
	}
	if n := pool.Stat().TotalConns(); n != 0 {
		t.Errorf("%d connections were made, want none", n)
	}
}

func TestALeaseTooShortForItsBatchIsAWarning(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, test := range []struct {
		name string
		opts relay.Options
		want int
	}{
		{"the defaults", relay.Options{}, 0},
		{"exactly long enough", relay.Options{Batch: 9, Concurrency: 2, Timeout: time.Second, Lease: 6 * time.Second}, 0},
		{"too short", relay.Options{Batch: 11, Concurrency: 2, Timeout: time.Second, Lease: 6 * time.Second}, 1},
	} {
		log := new(logged)
		test.opts.Log = log.logger()
		summary := d.runOnce(t, sent, test.opts)
		if len(summary.Warnings) != test.want {
			t.Errorf("%s: got %q, want %d warnings", test.name, summary.Warnings, test.want)
		}
		if test.want > 0 && !strings.Contains(summary.Warnings[0], "(6s) is shorter than Timeout * ceil(Batch/Concurrency) + 1s (7s)") {
			t.Errorf("%s: got %q, want both lengths in it", test.name, summary.Warnings)
		}
		if slices.ContainsFunc(log.lines(), func(line string) bool { return strings.Contains(line, "shorter") }) {
			t.Errorf("%s: the warning was logged, too: %q", test.name, log.lines())
		}
	}
}

func TestWrongOptionOfAChannelIsNamedInFull(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]relay.ChannelOptions{
		`Options.Channels["webhook"].Concurrency`:  {Concurrency: -1},
		`Options.Channels["webhook"].Backoff.Base`: {Backoff: &outbox.Backoff{Base: -1}},
	} {
		err := relay.Options{Channels: map[string]relay.ChannelOptions{"webhook": opts}}.Validate()
		var wrong *outbox.OptionError
		if !errors.As(err, &wrong) || wrong.Field != want || !errors.Is(err, outbox.ErrInvalidOptions) {
			t.Errorf("got %v, want an OptionError of %s", err, want)
		}
	}
}

func TestWithDefaultsSaysWhatZeroMeans(t *testing.T) {
	t.Parallel()
	opts := relay.Options{
		Lease: time.Minute, Backoff: outbox.Backoff{Base: 2 * time.Hour, Jitter: -1},
		Channels: map[string]relay.ChannelOptions{"correo": {Concurrency: 2, Backoff: &outbox.Backoff{}}, "webhook": {Timeout: time.Second}},
	}.WithDefaults()
	usual := outbox.Backoff{Base: 30 * time.Second, Factor: 2, Cap: time.Hour, Jitter: 0.2}
	rare := outbox.Backoff{Base: 2 * time.Hour, Factor: 2, Cap: 2 * time.Hour, Jitter: -1}
	want := relay.Options{
		Batch: 20, Concurrency: 5, Lease: time.Minute, Timeout: 30 * time.Second, Backoff: rare, PollInterval: 5 * time.Second, ProbeInterval: 10 * time.Second,
		Channels: map[string]relay.ChannelOptions{
			"correo":  {Concurrency: 2, Timeout: 30 * time.Second, Backoff: &usual},
			"webhook": {Concurrency: 5, Timeout: time.Second, Backoff: &rare},
		},
	}
	if !reflect.DeepEqual(opts, want) {
		t.Errorf("got %+v, want %+v", opts, want)
	}
	if again := opts.WithDefaults(); !reflect.DeepEqual(again, want) {
		t.Errorf("a second time: got %+v, want %+v", again, want)
	}
}
