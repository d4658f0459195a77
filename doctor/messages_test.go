package doctor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/doctor"
	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
	"github.com/mafesoftware/outbox-relay/outbox"
)

func TestAMessageThatShouldHaveBeenSentIsFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.exec(t, insert)
	p.recovers(t, p.examine(t))
	for _, late := range []string{
		"programado_para = now() - interval '6 minutes'",
		"programado_para = '-infinity'",
		"programado_para = now(), estado = 'procesando', bloqueado_hasta = now() - interval '1 hour'",
	} {
		p.exec(t, "update OUTBOX set "+late)
		r := p.examine(t)
		f := p.suffers(t, r, "due-late")
		if f.Severity != doctor.Broken || !strings.Contains(f.What, `"correo"`) {
			t.Errorf("got %+v, want it broken and the channel named", f)
		}
		for _, private := range []string{"ana@example.com", "secreto", "turno"} {
			if strings.Contains(text(t, r), private) {
				t.Errorf("%s is in %s", private, text(t, r))
			}
		}
	}
	p.exec(t, fill(p.table, "insert into PAUSES (canal) values ('correo')"))
	r := p.examine(t)
	p.recovers(t, r) // nobody is to send it now
	if f := one(t, r, "pauses"); !strings.Contains(f.What, "pauses: 1") {
		t.Errorf("got %q, want the pause", f.What)
	}
	p.exec(t, fill(p.table, "delete from PAUSES"))
	p.opts.MaxDueAge = 2 * time.Hour
	p.recovers(t, p.examine(t))
}

func TestChannelsThatNoSenderServesAreFound(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.exec(t, insert)
	p.recovers(t, p.examine(t)) // nobody said which are served
	p.opts.Channels = []string{"whatsapp"}
	f := p.suffers(t, p.examine(t), "channel-unserved")
	if f.Severity != doctor.Broken || !strings.Contains(f.What, `"correo"`) {
		t.Errorf("got %+v, want correo to be broken", f)
	}
	p.opts.LeaveUnknownChannels = true
	if f := p.suffers(t, p.examine(t), "channel-unserved"); f.Severity != doctor.Warning {
		t.Errorf("got %s, want a warning: another relay may serve it", f.Severity)
	}
	p.opts.LeaveUnknownChannels = false
	p.exec(t, "update OUTBOX set estado = 'descartado', ultimo_error_codigo = 'transporte_no_configurado'")
	p.suffers(t, p.examine(t), "channel-unserved")
	p.exec(t, "update OUTBOX set actualizado_en = now() - interval '25 hours'")
	p.recovers(t, p.examine(t)) // history
	p.exec(t, "update OUTBOX set actualizado_en = now()")
	p.exec(t, "update OUTBOX set estado = 'enviado', ultimo_error_codigo = null")
	p.recovers(t, p.examine(t)) // what was sent once does not matter
	p.exec(t, "update OUTBOX set estado = 'pendiente'")
	p.opts.Channels = []string{"whatsapp", "correo"}
	p.recovers(t, p.examine(t))
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	pool := pgtest.PoolOn(t, "postgres://127.0.0.1:1/none", nil)
	for _, test := range []struct {
		table outbox.Table
		opts  doctor.Options
		want  string
	}{
		{outbox.Table{TenantType: "int"}, doctor.Options{}, "TenantType"},
		{outbox.Table{}, doctor.Options{MaxDueAge: -1}, "MaxDueAge"},
		{outbox.Table{}, doctor.Options{MaxSnapshotAge: -1}, "MaxSnapshotAge"},
		{outbox.Table{}, doctor.Options{Timeout: time.Millisecond}, "Timeout"},
		{outbox.Table{}, doctor.Options{ListenDSN: "postgres://relay:s3cr3t@host:port/"}, "ListenDSN"},
	} {
		_, err := doctor.Examine(t.Context(), pool, test.table, test.opts)
		if !errors.Is(err, outbox.ErrInvalidOptions) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("got %v, want ErrInvalidOptions and %s", err, test.want)
		}
	}
}
