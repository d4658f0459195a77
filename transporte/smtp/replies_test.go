package smtp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte/smtp"
)

// steps are the commands of the phases that a row names, and what the client must be told to get there.
var steps = map[string]string{
	"greeting": "greeting", "EHLO": "EHLO", "TLS": "STARTTLS", "AUTH": "AUTH",
	"MAIL": "MAIL", "RCPT": "RCPT", "DATA": "DATA", "end": "end",
}

// answering is a server that offers TLS and a login and says reply in phase, and the options to get there.
func answering(phase, reply string) (*server, smtp.Options) {
	s := replying(steps[phase], reply)
	s.tls, s.offers, s.secure = testAuthority().server, []string{"STARTTLS"}, []string{"AUTH PLAIN"}
	opts := smtp.Options{TLSConfig: testAuthority().trusted}
	if phase == "AUTH" {
		opts.Username, opts.Password = "club", "hunter2"
	}
	return s, opts
}

func TestEveryRowOfTheTableDecidesAboutItsExample(t *testing.T) {
	t.Parallel()
	for i, row := range smtp.Replies() {
		phases := strings.Fields(row.Phases)
		if row.Phases == "" {
			phases = []string{"MAIL", "RCPT", "DATA", "end"}
		}
		var reached []string
		for _, phase := range phases {
			var code int
			var text string
			if _, err := fmt.Sscanf(row.Example, "%d", &code); err == nil {
				text = row.Example[4:]
			}
			if smtp.FirstRow(phase, code, text) != i {
				continue // a stricter row for this phase stands above
			}
			reached = append(reached, phase)
			t.Run(fmt.Sprintf("%d %s %s", i, phase, row.Example), func(t *testing.T) {
				t.Parallel()
				s, opts := answering(phase, row.Example+" <ana@destino.example>")
				failed := failure(t, t.Context(), newClient(t, start(t, s), opts))
				checkFailure(t, failed, row.Category, codeOf(row.Example), false)
				if failed.RetryAfter != row.Wait {
					t.Errorf("got a wait of %s, want %s", failed.RetryAfter, row.Wait)
				}
			})
		}
		if len(reached) == 0 || row.Phases != "" && len(reached) != len(phases) {
			t.Errorf("row %d (%s): another row stands in its way: it decides only at %v", i, row.Example, reached)
		}
		if row.Source == "" {
			t.Errorf("row %d (%s) names no source", i, row.Example)
		}
	}
}

// codeOf is the reply code and the enhanced code at the beginning of a reply.
func codeOf(reply string) string {
	return regexp.MustCompile(`^\d{3}( [45]\.\d+\.\d+)?`).FindString(reply)
}

// What an operator must be able to rely on, whatever the table looks like.
func TestRepliesKeepWhatCanStillBeSentAndDiscardWhatCannot(t *testing.T) {
	t.Parallel()
	tests := []struct {
		phase, reply, category, code string
		wait                         time.Duration
	}{
		{"greeting", "421 too busy", "red", "421", 0},
		{"greeting", "554 5.7.1 blocked by a list", "smtp_saludo", "554 5.7.1", 0},
		{"EHLO", "451 4.3.0 later", "red", "451 4.3.0", 0},
		{"EHLO", "550 5.7.1 bad name", "smtp_saludo", "550 5.7.1", 0},
		{"TLS", "454 4.7.0 no TLS now", "red", "454 4.7.0", 0},
		{"TLS", "500 what", "credenciales", "500", 0},
		{"AUTH", "454 4.7.0 later", "red", "454 4.7.0", 0},
		{"AUTH", "421 4.7.0 too many logins", "red", "421 4.7.0", 0},
		{"AUTH", "535 5.7.8 wrong", "credenciales", "535 5.7.8", 0},
		{"AUTH", "504 5.5.4 unknown mechanism", "credenciales", "504 5.5.4", 0},
		{"MAIL", "421 4.3.2 closing", "red", "421 4.3.2", 0},
		{"MAIL", "451 4.3.0 later", "red", "451 4.3.0", 0},
		{"MAIL", "454 Throttling failure: Maximum sending rate exceeded.", "limite", "454", 0},
		{"MAIL", "550 5.7.1 not your sender", "credenciales", "550 5.7.1", 0},
		{"MAIL", "550 sender rejected", "credenciales", "550", 0},
		{"MAIL", "550 5.7.0 policy", "rechazado", "550 5.7.0", 0},
		{"MAIL", "554 5.7.1 policy", "rechazado", "554 5.7.1", 0},
		{"MAIL", "530 5.7.57 not authenticated", "credenciales", "530 5.7.57", 0},
		{"MAIL", "552 5.3.4 too big", "rechazado", "552 5.3.4", 0},
		{"RCPT", "450 4.2.0 Greylisted", "red", "450 4.2.0", 6 * time.Minute},
		{"RCPT", "451 4.7.1 Greylisting in action", "limite", "451 4.7.1", 6 * time.Minute},
		{"RCPT", "450 try again", "red", "450", 6 * time.Minute},
		{"RCPT", "452 4.2.2 full for now", "red", "452 4.2.2", 0},
		{"RCPT", "550 5.1.1 unknown", "rechazado", "550 5.1.1", 0},
		{"RCPT", "550 5.1.8 bad sender domain", "credenciales", "550 5.1.8", 0},
		{"RCPT", "550 no such user", "rechazado", "550", 0},
		{"RCPT", "554 5.7.1 Relay access denied", "rechazado", "554 5.7.1", 0},
		{"RCPT", "521 host takes no mail", "rechazado", "521", 0},
		{"DATA", "421 4.7.28 rate", "limite", "421 4.7.28", 0},
		{"DATA", "554 no valid recipients", "rechazado", "554", 0},
		{"end", "421 4.3.2 shutting down", "red", "421 4.3.2", 0},
		{"end", "452 4.3.1 disk full", "red", "452 4.3.1", 0},
		{"end", "550 5.4.5 daily limit", "limite", "550 5.4.5", time.Hour},
		{"end", "550 5.7.60 cannot send as", "credenciales", "550 5.7.60", 0},
		{"end", "554 5.7.1 spam", "rechazado", "554 5.7.1", 0},
		{"end", "550-5.7.26 unauthenticated\r\n550 5.7.26 see the page", "rechazado", "550 5.7.26", 0},
		{"end", "554 4.7.1 contradicts itself", "rechazado", "554", 0},
	}
	for _, test := range tests {
		t.Run(test.phase+" "+test.reply, func(t *testing.T) {
			t.Parallel()
			s, opts := answering(test.phase, test.reply)
			failed := failure(t, t.Context(), newClient(t, start(t, s), opts))
			checkFailure(t, failed, test.category, test.code, false)
			if failed.RetryAfter != test.wait {
				t.Errorf("got a wait of %s, want %s", failed.RetryAfter, test.wait)
			}
		})
	}
}

func TestQueueIDIsReadFromTheLastReplyOfKnownServers(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"2.0.0 Ok: queued as 4XyZ1k2M3n4P5":                   "4XyZ1k2M3n4P5",                            // Postfix
		"OK id=1qXyZa-0001Bc-2D":                              "1qXyZa-0001Bc-2D",                         // Exim
		"2.6.0 <a@b> [InternalId=12345678901, Hostname=x] ok": "12345678901",                              // Exchange
		"Ok 01010160d7de98d8-21e57d9a-example-000000":         "01010160d7de98d8-21e57d9a-example-000000", // SES
		"2.0.0 Ok":                             "",
		"Ok thanks for all the mail":           "",
		"queued as <ana@club.example>":         "",
		"queued as ana@club.example":           "",
		"queued as " + strings.Repeat("a", 65): "",
	}
	for text, want := range tests {
		if got := smtp.QueueID(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func FuzzReplyBecomesAFailureWithoutItsText(f *testing.F) {
	for _, row := range smtp.Replies() {
		f.Add(row.Example)
	}
	f.Add("550-5.1.1\r\n550 5.1.1 <ana@destino.example>")
	f.Add("250 2.0.0 Ok: queued as 4XyZ1k2M3n4P5")
	f.Add("99 short\n")
	known := append(outbox.TransientCategories(), outbox.PermanentCategories()...)
	shown := regexp.MustCompile(`^([45]\d\d( [45]\.\d{1,3}\.\d{1,3})?|respuesta_invalida|sin_respuesta)$`)
	f.Fuzz(func(t *testing.T, reply string) {
		if reply == "" || slices.Contains([]string{drop, reset, hang, drip, flood}, reply) {
			t.Skip("means something else to the server")
		}
		s := replying("end", reply)
		s.last = "end" // else a reply that is not complete is waited for
		defer s.stop()
		c, err := smtp.New("smtp.club.example:587", smtp.Options{DialContext: s.dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		id, err := c.Send(t.Context(), reminder)
		if err == nil {
			if !regexp.MustCompile(`^<[^ ]+>( [A-Za-z0-9._-]{6,81})?$`).MatchString(id) {
				t.Errorf("got id %q of %q", id, reply)
			}
			return
		}
		failed := asFailure(t, id, err)
		if !shown.MatchString(failed.Code) || !slices.Contains(known, failed.Category) {
			t.Errorf("got %s (%s) of %q", failed.Category, failed.Code, reply)
		}
	})
}

func TestTheOperatorsPageHasEveryCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) < 5 {
		t.Fatalf("got %v, %v, want the package's files", sources, err)
	}
	code := regexp.MustCompile(`(?:Code: |return )"([a-z0-9_]+)"`)
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range code.FindAllSubmatch(source, -1) {
			if !strings.Contains(string(page), "`"+string(found[1])+"`") && string(found[1]) != "localhost" && string(found[1]) != "render" {
				t.Errorf("docs/providers.md says nothing of %s", found[1])
			}
		}
	}
}
