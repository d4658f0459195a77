package metrics_test

import (
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/metrics"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

func TestTheBacklogIsCountedByChannelAndState(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	s.insert(t, "correo", ", programado_para", ", now() - interval '1 hour'", "a", "b")
	s.insert(t, "correo", ", programado_para", ", now() + interval '1 day'", "c", "d", "e")
	s.insert(t, "correo", ", proximo_intento_en", ", now() + interval '1 day'", "retried")
	s.insert(t, "correo", ", estado, bloqueado_hasta", ", 'procesando', now() + interval '1 day'", "f")
	s.insert(t, "whatsapp", ", estado, bloqueado_hasta", ", 'procesando', now() - interval '2 hours'", "g")
	s.insert(t, "paloma", "", "", "h")
	s.insert(t, "cuervo", "", "", "i")
	s.insert(t, "correo", ", estado", ", 'enviado'", "j", "k")
	s.looked(t)
	const backlog = "outbox_backlog_messages"
	s.want(t, 2, backlog, "channel=correo", "state=due")
	s.want(t, 4, backlog, "channel=correo", "state=later")
	s.want(t, 1, backlog, "channel=correo", "state=sending")
	s.want(t, 0, backlog, "channel=correo", "state=expired")
	s.want(t, 0, backlog, "channel=whatsapp", "state=due")
	s.want(t, 1, backlog, "channel=whatsapp", "state=expired")
	s.want(t, 2, backlog, "channel=other", "state=due")
	for channel, want := range map[string]float64{"correo": 3600, "whatsapp": 7200, "other": 0} {
		if got := s.value(t, "outbox_oldest_due_age_seconds", "channel="+channel); got < want || got > want+600 {
			t.Errorf("got the oldest of %s at %v s, want about %v", channel, got, want)
		}
	}
	s.want(t, 0, "outbox_backlog_capped", "state=due")
	s.want(t, 0, "outbox_backlog_capped", "state=later")
	s.want(t, 1, "outbox_trigger_enabled")
	s.want(t, 1, "outbox_table_query_success")
	s.want(t, 0, "outbox_notification_queue_usage_ratio")
}

func TestWhatIsPausedIsNotDue(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{})
	s.exec(t, sql.Fill("insert into {{pause_table}} (canal) values ('correo')", outbox.Table{}.Names()))
	s.insert(t, "correo", ", programado_para", ", now() - interval '1 hour'", "a", "b")
	s.insert(t, "correo", ", estado, bloqueado_hasta", ", 'procesando', now() - interval '2 hours'", "c")
	s.insert(t, "whatsapp", "", "", "d")
	s.looked(t)
	s.want(t, 3, "outbox_backlog_messages", "channel=correo", "state=paused")
	s.want(t, 0, "outbox_backlog_messages", "channel=correo", "state=due")
	s.want(t, 0, "outbox_backlog_messages", "channel=correo", "state=expired")
	s.want(t, 0, "outbox_oldest_due_age_seconds", "channel=correo")
	s.want(t, 1, "outbox_backlog_messages", "channel=whatsapp", "state=due")
}

func TestALongBacklogIsCountedToABound(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{Timeout: patience})
	s.exec(t, "alter table outbox disable trigger user")
	s.exec(t, `insert into outbox (organizacion_id, canal, destino, plantilla, clave_idempotencia, programado_para)
		select gen_random_uuid(), 'correo', 'ana@example.com', 'a', n::text, now() - interval '1 hour' + n * interval '1 ms' from generate_series(1, 100001) n`)
	s.reaches(t, 100_000, "outbox_backlog_messages", "channel=correo", "state=due")
	s.want(t, 1, "outbox_backlog_capped", "state=due")
	s.want(t, 0, "outbox_backlog_capped", "state=later")
	s.want(t, 0, "outbox_trigger_enabled")
	if got := s.value(t, "outbox_oldest_due_age_seconds", "channel=correo"); got < 3599 {
		t.Errorf("got the oldest at %v s, want an hour", got)
	}
}

func TestScrapesShareALookAtTheTable(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{Fresh: time.Hour, Timeout: patience})
	s.reaches(t, 0, "outbox_backlog_messages", "channel=correo", "state=due")
	s.insert(t, "correo", "", "", "a")
	s.want(t, 0, "outbox_backlog_messages", "channel=correo", "state=due")
}

func TestATableThatDoesNotAnswerHoldsUpNoScrape(t *testing.T) {
	t.Parallel()
	s := open(t, metrics.Options{Fresh: time.Nanosecond, Timeout: time.Hour})
	s.insert(t, "correo", "", "", "a")
	s.reaches(t, 1, "outbox_backlog_messages", "channel=correo", "state=due")
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "lock table outbox"); err != nil {
		t.Fatal(err)
	}
	// The look waits for the lock, for an hour if need be. Scrapes go on with the figures that they have.
	for range 3 {
		s.want(t, 1, "outbox_backlog_messages", "channel=correo", "state=due")
		s.want(t, 0, "outbox_messages_total", "channel=correo", "outcome=sent")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.insert(t, "correo", "", "", "b")
	s.reaches(t, 2, "outbox_backlog_messages", "channel=correo", "state=due")
}
