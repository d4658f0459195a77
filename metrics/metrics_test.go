package metrics_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mafesoftware/outbox-relay/internal/waitfor"
	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/relay"
	"github.com/mafesoftware/outbox-relay/retention"
	"github.com/mafesoftware/outbox-relay/transporte"
)

func TestARelayAtWorkCountsWhatBecomesOfMessages(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	s.run(t, func(_ context.Context, m transporte.Message) (string, error) {
		switch m.Template {
		case "refused":
			return "", &transporte.Error{Category: outbox.Rejected, Code: "422"}
		case "later":
			return "", &transporte.Error{Category: outbox.Network, Code: "timeout", Uncertain: true}
		}
		return "", nil
	}, relay.Options{Backoff: outbox.Backoff{Base: time.Hour}}) // what is retried is not sent again while the test looks
	s.reaches(t, 1, "outbox_listener_up")
	s.insert(t, "correo", "", "", "good", "good", "refused", "later")
	s.insert(t, "whatsapp", ", max_intentos", ", 1", "later")
	s.insert(t, "paloma", "", "", "nobody sends it")
	const total = "outbox_messages_total"
	s.reaches(t, 2, total, "channel=correo", "outcome=sent")
	s.reaches(t, 1, total, "channel=correo", "outcome=discarded")
	s.reaches(t, 1, total, "channel=correo", "outcome=retried")
	s.reaches(t, 1, total, "channel=whatsapp", "outcome=failed")
	s.reaches(t, 1, total, "channel=other", "outcome=discarded")
	for _, outcome := range []string{"lost", "released", "errored"} {
		s.want(t, 0, total, "channel=correo", "outcome="+outcome)
	}
	s.want(t, 1, "outbox_failures_total", "channel=correo", "category=rechazado", "code=422")
	s.want(t, 1, "outbox_failures_total", "channel=correo", "category=red", "code=timeout")
	s.want(t, 1, "outbox_failures_total", "channel=whatsapp", "category=red", "code=timeout")
	s.want(t, 1, "outbox_failures_total", "channel=other", "category=credenciales", "code=transporte_no_configurado")
	s.want(t, 1, "outbox_sends_uncertain_total", "channel=correo")
	s.want(t, 0, "outbox_sends_abandoned_total", "channel=correo")
	s.want(t, 4, "outbox_due_to_send_seconds", "channel=correo")
	s.want(t, 4, "outbox_send_duration_seconds", "channel=correo")
	s.want(t, 0, "outbox_sends_in_flight")
	s.want(t, 6, "outbox_claimed_messages_total")
	if !waitfor.Within(patience, func() bool { return s.value(t, "outbox_claim_duration_seconds") == s.value(t, "outbox_claims_total") }) {
		t.Error("the claims are not as many as their durations") // two looks, between which the relay may have claimed
	}
	for _, name := range []string{"outbox_claims_total", "outbox_wakeups_total", "outbox_pool_acquires_total", "outbox_pool_connections"} {
		if s.value(t, name) < 1 {
			t.Errorf("%s: got %v, want at least 1", name, s.value(t, name))
		}
	}
	s.want(t, 0, "outbox_watching")
	s.want(t, 0, "outbox_database_errors_total")
}

func TestSendsUnderWayAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	begun, proceed := make(chan struct{}), make(chan struct{})
	s.run(t, func(context.Context, transporte.Message) (string, error) {
		begun <- struct{}{}
		<-proceed
		return "", nil
	}, relay.Options{})
	s.insert(t, "correo", "", "", "a", "b")
	<-begun
	<-begun
	s.want(t, 2, "outbox_sends_in_flight", "channel=correo")
	close(proceed)
	s.reaches(t, 0, "outbox_sends_in_flight", "channel=correo")
}

func TestALostListenerIsSeenAndCounted(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	lost := make(chan struct{}, 10)
	s.run(t, sent, relay.Options{Observer: relay.Observer{Listening: func(err error) {
		if err != nil {
			lost <- struct{}{}
		}
	}}})
	s.reaches(t, 1, "outbox_listener_up")
	s.want(t, 0, "outbox_listener_reconnects_total")
	s.exec(t, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outbox relay: listen' and datname = current_database()")
	select {
	case <-lost:
	case <-time.After(patience):
		t.Fatal("the relay did not lose its listener")
	}
	s.reaches(t, 1, "outbox_listener_reconnects_total")
	s.reaches(t, 1, "outbox_listener_up")
}

func TestFailuresOfTheDatabaseCountByClass(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{Fresh: time.Nanosecond})
	s.run(t, sent, relay.Options{PollInterval: 10 * time.Millisecond})
	s.reaches(t, 1, "outbox_listener_up") // a relay that starts without its table would give up
	s.reaches(t, 1, "outbox_table_query_success")
	s.exec(t, "alter table outbox rename to away")
	s.reaches(t, 0, "outbox_table_query_success")
	waitfor.True(t, "a failed claim with class 42", func() bool {
		return s.value(t, "outbox_database_errors_total", "class=42") >= 1 && s.value(t, "outbox_claims_total", "result=failed") >= 1
	})
	if got := s.value(t, "outbox_backlog_messages"); got == got {
		t.Errorf("got a backlog of %v while the table is away, want none", got)
	}
	s.exec(t, "alter table away rename to outbox")
	s.reaches(t, 1, "outbox_table_query_success")
	s.want(t, 0, "outbox_backlog_messages", "channel=correo", "state=due")
}

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	o := s.Observer()
	for n := range 1000 {
		name := fmt.Sprint("invented ", n)
		a := relay.Attempt{Channel: name}
		o.SendEnd(o.SendStart(t.Context(), a), relay.SendEnd{Attempt: a})
		o.Recorded(relay.Recorded{Attempt: a, Outcome: relay.Discarded, Category: name, Code: name})
	}
	s.want(t, 1000, "outbox_messages_total", "channel=other", "outcome=discarded")
	s.want(t, 900, "outbox_failures_total", "channel=other", "category=other", "code=other")
	if n, err := testutil.GatherAndCount(s.registry, "outbox_failures_total"); err != nil || n != 101 {
		t.Errorf("got %d series of failures, %v, want 101", n, err)
	}
	if n, err := testutil.GatherAndCount(s.registry); err != nil || n > 300 {
		t.Errorf("got %d series in all, %v, want at most 300", n, err)
	}
}

func TestRoundsOfRetentionAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	s.Purged(retention.Round{Deleted: 7})
	s.Purged(retention.Round{Skipped: true})
	s.want(t, 7, "outbox_purged_messages_total")
	s.want(t, 1, "outbox_purges_total", "result=done")
	s.want(t, 1, "outbox_purges_total", "result=skipped")
	if age := float64(time.Now().Unix()) - s.value(t, "outbox_purge_last_success_timestamp_seconds"); age < -1 || age > 60 {
		t.Errorf("the last success was %v s ago, want now", age)
	}
}

func TestSeveralOutboxesShareARegistry(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	if _, err := metrics.Register(s.registry, s.pool, outbox.Table{Schema: "negocio"}, senders(sent), metrics.Options{}); err != nil {
		t.Fatal(err)
	}
	s.want(t, 0, "outbox_messages_total", "outbox=public.outbox", "channel=correo", "outcome=sent")
	s.want(t, 0, "outbox_messages_total", "outbox=negocio.outbox", "channel=correo", "outcome=sent")
	s.looked(t)
	before, _ := testutil.GatherAndCount(s.registry)
	if _, err := metrics.Register(s.registry, s.pool, outbox.Table{}, senders(sent), metrics.Options{}); err == nil {
		t.Error("the same outbox was registered twice without an error")
	}
	if after, err := testutil.GatherAndCount(s.registry); err != nil || after != before {
		t.Errorf("got %d series after a refused registration, %v, want the %d from before", after, err, before)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(open(t, metrics.Options{}).registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
