package smtp_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

// sent returns e as the server gets it, in bytes and parsed.
func sent(t *testing.T, e transporte.Email, opts smtp.Options) ([]byte, *mail.Message) {
	t.Helper()
	s := start(t, &server{offers: []string{"SMTPUTF8"}})
	if _, err := newClient(t, s, opts).Send(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	raw := s.message(0)
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return raw, m
}

func TestTheEmailArrivesAsItWasGiven(t *testing.T) {
	t.Parallel()
	e := reminder
	e.Text = "Mañana a las 10\n.\n.ana\nFrom here = there\r\n" + strings.Repeat("muy largo ", 30) + "\n"
	_, m := sent(t, e, smtp.Options{IdempotencyHeader: "Resend-Idempotency-Key"})
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != e.Subject {
		t.Errorf("got subject %q, %v, want %q", subject, err, e.Subject)
	}
	for name, want := range map[string]string{
		"From": `"Club" <avisos@club.example>`, "To": `"Ana" <ana@destino.example>`,
		"Message-ID": "<" + rowID + "@club.example>", "Resend-Idempotency-Key": e.IdempotencyKey,
		"Auto-Submitted": "auto-generated", "X-Entity-Ref-ID": rowID, "MIME-Version": "1.0",
		"User-Agent": "", "X-Mailer": "", // what we run is nobody's business
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("got %s: %q, want %q", name, got, want)
		}
	}
	if date, err := m.Header.Date(); err != nil || time.Since(date).Abs() > time.Minute {
		t.Errorf("got date %v, %v, want now", date, err)
	}
	parts := []struct{ kind, text string }{
		{"text/plain", strings.ReplaceAll(strings.ReplaceAll(e.Text, "\r\n", "\n"), "\n", "\r\n")}, {"text/html", e.HTML},
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("got %s, %v, want multipart/alternative", kind, err)
	}
	r := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range parts {
		p, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(p) // decodes quoted-printable
		if err != nil || string(text) != want.text || !strings.HasPrefix(p.Header.Get("Content-Type"), want.kind) {
			t.Errorf("got %s %q, %v, want %s %q", p.Header.Get("Content-Type"), text, err, want.kind, want.text)
		}
	}
	if _, err := r.NextPart(); err != io.EOF {
		t.Errorf("got %v after the parts, want no more", err)
	}
}

func TestAnEmailGoesOverTheWireByteForByte(t *testing.T) {
	t.Parallel()
	raw, _ := sent(t, reminder, smtp.Options{IdempotencyHeader: "Resend-Idempotency-Key"})
	got := regexp.MustCompile("(?m)^Date: .*?\r$").ReplaceAllString(string(raw), "Date: now\r")
	const boundary = "99cb0c0ed07fa5d597a4e6ceab9aef218b425fa26e8748b7" // of this row and these texts
	want := strings.Join([]string{
		"Auto-Submitted: auto-generated",
		"Date: now",
		"MIME-Version: 1.0",
		"Message-ID: <" + rowID + "@club.example>",
		"Resend-Idempotency-Key: club-7:turno-31",
		"Subject: =?UTF-8?q?Tu_turno_de_ma=C3=B1ana?=",
		"X-Entity-Ref-ID: " + rowID,
		`From: "Club" <avisos@club.example>`,
		`To: "Ana" <ana@destino.example>`,
		"Content-Type: multipart/alternative;",
		" boundary=" + boundary,
		"",
		"--" + boundary,
		"Content-Transfer-Encoding: quoted-printable",
		"Content-Type: text/plain; charset=UTF-8",
		"",
		"Ma=C3=B1ana a las 10",
		"--" + boundary,
		"Content-Transfer-Encoding: quoted-printable",
		"Content-Type: text/html; charset=UTF-8",
		"",
		"<p>Ma=C3=B1ana a las 10</p>",
		"--" + boundary + "--",
		"",
	}, "\r\n")
	if got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestAnEmailWithOneBodyHasOnePart(t *testing.T) {
	t.Parallel()
	for kind, e := range map[string]transporte.Email{
		"text/plain": {From: "a@club.example", To: "b@club.example", Subject: "s", Text: "ñ"},
		"text/html":  {From: "a@club.example", To: "b@club.example", Subject: "s", HTML: "ñ"},
	} {
		_, m := sent(t, e, smtp.Options{})
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if err != nil || strings.TrimSpace(string(text)) != "ñ" || m.Header.Get("Content-Type") != kind+"; charset=UTF-8" {
			t.Errorf("got %s %q, %v, want %s", m.Header.Get("Content-Type"), text, err, kind)
		}
	}
}

func TestEveryAttemptSendsTheSameBytesButForTheDate(t *testing.T) {
	t.Parallel()
	date := regexp.MustCompile(`(?m)^Date: .*\r\n`)
	opts := smtp.Options{IdempotencyHeader: "Resend-Idempotency-Key"}
	first, _ := sent(t, reminder, opts)
	again, _ := sent(t, reminder, opts)
	if !date.Match(first) {
		t.Error("the email has no date")
	}
	if got, want := date.ReplaceAll(again, nil), date.ReplaceAll(first, nil); !bytes.Equal(got, want) {
		t.Errorf("got another email of the same row:\n%s\nwant\n%s", got, want)
	}
	other := reminder
	other.RowID = "another"
	if third, _ := sent(t, other, opts); bytes.Equal(date.ReplaceAll(third, nil), date.ReplaceAll(first, nil)) {
		t.Error("two rows look like one")
	}
}

func TestMessageIDsAreWellFormedWhateverTheRowIsCalled(t *testing.T) {
	t.Parallel()
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	for row, want := range map[string]string{
		rowID: rowID, "row.7": "row.7", "": hash(""), "a b": hash("a b"), "ñ": hash("ñ"), "a>\r\nBcc: b": hash("a>\r\nBcc: b"),
		"row..7": hash("row..7"),
	} {
		e := reminder
		e.RowID = row
		_, m := sent(t, e, smtp.Options{MessageIDDomain: "mail.club.example"})
		if got := m.Header.Get("Message-ID"); got != "<"+want+"@mail.club.example>" {
			t.Errorf("row %q: got %s, want %s", row, got, want)
		}
		if m.Header.Get("Bcc") != "" {
			t.Error("a row's id became a header")
		}
	}
}

func TestKeysThatAHeaderCannotCarryAreHashedAndNeverCut(t *testing.T) {
	t.Parallel()
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	long := strings.Repeat("k", 256)
	for key, want := range map[string]string{
		"t:a": "t:a", long: long, long + "k": hash(long + "k"), "t:a b": hash("t:a b"), "t:ñ": hash("t:ñ"),
		"t:\r\nBcc: b": hash("t:\r\nBcc: b"), "": "",
	} {
		e := reminder
		e.IdempotencyKey = key
		_, m := sent(t, e, smtp.Options{IdempotencyHeader: "Resend-Idempotency-Key"})
		if got := m.Header.Get("Resend-Idempotency-Key"); got != want {
			t.Errorf("key %q: got %q, want %q", key, got, want)
		}
	}
}

func TestADomainBeyondASCIITravelsInASCII(t *testing.T) {
	t.Parallel()
	e := reminder
	e.From, e.To = "avisos@niños.example", `"Pérez, Ana" <ana@año.example>`
	s := start(t, &server{})
	id, err := newClient(t, s, smtp.Options{}).Send(t.Context(), e)
	if want := "<" + rowID + "@xn--nios-hqa.example> QUEUE-1"; err != nil || id != want {
		t.Errorf("got %q, %v, want %q", id, err, want)
	}
	m, err := mail.ReadMessage(bytes.NewReader(s.message(0)))
	if err != nil {
		t.Fatal(err)
	}
	to, err := mail.ParseAddress(m.Header.Get("To"))
	if err != nil || to.Name != "Pérez, Ana" || to.Address != "ana@xn--ao-zja.example" {
		t.Errorf("got %v, %v, want the domain in ASCII and the name as it was", to, err)
	}
}

func TestAddressesThatAreNoneAreRefusedHere(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "ana", "ana@", "ana@a..ñ", "ana@b.example\r\nRCPT TO:<x@y>", "a@b.example (\n)"} {
		for _, code := range []string{"remitente_invalido", "destino_invalido"} {
			e := reminder
			if code == "destino_invalido" {
				e.To = bad
			} else {
				e.From = bad
			}
			s := start(t, &server{})
			id, err := newClient(t, s, smtp.Options{}).Send(t.Context(), e)
			checkFailure(t, asFailure(t, id, err), outbox.Rejected, code, false)
			if opened, _, _ := s.counts(); opened != 0 {
				t.Errorf("%q: the server was called", bad)
			}
		}
	}
}

func FuzzAnEmailKeepsItsHeadersAndItsText(f *testing.F) {
	f.Add("Ana <ana@destino.example>", "Hola", ".\r\n", "<p>.</p>", "t:k")
	f.Add(`"a b"@destino.example`, "¡Hola!\t"+strings.Repeat("x", 200), "From a\n.\n..\n", "", "t:\r\nBcc: a@b")
	f.Add("ana@destino.example", "a\r\nBcc: eva@club.example", "\r\n.\r\nQUIT\r\n", "x", "ñ")
	f.Fuzz(func(t *testing.T, to, subject, text, html, key string) {
		s := &server{offers: []string{"SMTPUTF8"}}
		defer s.stop()
		c, err := smtp.New("smtp.club.example:587", smtp.Options{
			IdempotencyHeader: "Resend-Idempotency-Key", DialContext: s.dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		id, err := c.Send(t.Context(), transporte.Email{
			From: "avisos@club.example", To: to, Subject: subject, Text: text, HTML: html, RowID: rowID, IdempotencyKey: key,
		})
		if err != nil {
			checkFailure(t, asFailure(t, id, err), outbox.Rejected, "destino_invalido", false)
			return
		}
		if _, _, messages := s.counts(); messages != 1 {
			t.Fatalf("got %d messages, want 1", messages)
		}
		m, err := mail.ReadMessage(bytes.NewReader(s.message(0)))
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("Bcc") != "" || len(m.Header) > 11 {
			t.Errorf("a header got in: %v", m.Header)
		}
		if got := m.Header.Get("Message-ID"); got != "<"+rowID+"@club.example>" {
			t.Errorf("got Message-ID %s", got)
		}
	})
}
