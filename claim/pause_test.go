package claim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/claim"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/sql"
)

const (
	ana  = "6b5a3f0e-7d5c-4c1e-9f2a-0d3b8a4c5e6f"
	luis = "0b5f6d0e-6f0c-4c3a-9a43-0d1f6f4f7c11"
)

func TestTakeLeavesOutWhatIsPausedAndDoesNotWaitForIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		table  outbox.Table
		pauses string // canal, tenant
		want   []string
	}{
		"a channel":             {pauses: "('correo', null)", want: []string{"whatsapp ana", "whatsapp luis"}},
		"a tenant":              {pauses: "(null, '" + ana + "')", want: []string{"correo luis", "whatsapp luis"}},
		"a channel of a tenant": {pauses: "('correo', '" + ana + "')", want: []string{"correo luis", "whatsapp ana", "whatsapp luis"}},
		"both":                  {pauses: "('correo', null), (null, '" + ana + "')", want: []string{"whatsapp luis"}},
		"everything":            {pauses: "(null, null)"},
		"another channel":       {pauses: "('webhook', null)", want: []string{"correo ana", "correo luis", "whatsapp ana", "whatsapp luis"}},
		"texts and other names": {table: outbox.Table{Schema: "App", Name: "Salida", TenantColumn: "empresaId", TenantType: outbox.TenantText},
			pauses: "('correo', '" + ana + "')", want: []string{"correo luis", "whatsapp ana", "whatsapp luis"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openTable(t, test.table)
			names := f.table.Names()
			f.exec(t, sql.Fill("insert into {{pause_table}} (canal, {{tenant}}) values "+test.pauses, names))
			byID := map[string]string{}
			for _, channel := range []string{"correo", "whatsapp"} {
				for who, tenant := range map[string]string{"ana": ana, "luis": luis} {
					with := fields{"canal": "'" + channel + "'", names["tenant"]: "'" + tenant + "'"}
					byID[f.add(t, with)] = channel + " " + who
					with["programado_para"] = "now() + interval '1 minute'"
					f.add(t, with)
				}
			}
			b := f.ask(t, claim.Ask{Limit: 10, Lease: lease, Unpaused: true})
			var got []string
			for _, row := range b.Rows {
				got = append(got, byID[id(row)])
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if waits := !b.Next.IsZero(); waits != (len(test.want) > 0) {
				t.Errorf("got next due %v, want one only if some message is not paused", b.Next)
			}
			if all := f.take(t, 10); len(all.Rows) != 4-len(test.want) {
				t.Errorf("a claim that heeds no pauses took %d rows, want the %d that are left", len(all.Rows), 4-len(test.want))
			}
		})
	}
}

func TestTakePassesOverAPausedRowWhoseLeaseHasEnded(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.exec(t, sql.Fill("insert into {{pause_table}} (canal) values ('correo')", f.table.Names()))
	row := f.add(t, fields{"estado": "'procesando'", "intentos": "5", "bloqueado_hasta": "now() - interval '1 minute'"})
	before := f.whole(t, row)
	b := f.ask(t, claim.Ask{Limit: 10, Lease: lease, Unpaused: true, Horizon: time.Hour})
	if len(b.Rows)+len(b.Closed) != 0 || !b.Next.IsZero() {
		t.Errorf("got %d rows, %d closed, next %v, want nothing", len(b.Rows), len(b.Closed), b.Next)
	}
	if got := f.whole(t, row); got != before {
		t.Errorf("got %s, want it as it was: %s", got, before)
	}
}
