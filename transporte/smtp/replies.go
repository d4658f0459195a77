package smtp

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

const (
	// refusedUs is a category outside the catalogue, so transient: the server will not talk to us, whatever the message.
	// A day on a block list must not discard the queue.
	refusedUs = "smtp_saludo"
	// greylisted is the wait after which a server that turns away every stranger once usually lets it in: most ask for
	// five minutes (RFC 6647, 5, allows up to a day).
	greylisted = 6 * time.Minute
	// daily is the wait after a quota of a day is used up.
	daily = time.Hour
)

// row says what a reply means. It fits if phase, code and enhanced code each fit.
type row struct {
	phases   string // of them one; "" is any
	codes    string // of them one; y is any digit
	enhanced string // of them one; x is any number; "" is any and none, "-" is none
	category string
	wait     time.Duration // RetryAfter
	source   string        // where it is written
	example  string        // a reply that this row is there for
}

// table is what replies mean. The first row that fits decides; one of them always does.
type table []row

// The codes are those of RFC 5321 4.2.3, RFC 4954 6 (AUTH), RFC 3207 4 (STARTTLS) and RFC 7504 (521, 556), the enhanced
// ones those of RFC 3463 and the registry of RFC 5248.
var replies = table{
	// What concerns the connection and not the message.
	{"greeting EHLO", "4yz", "", outbox.Network, 0, "RFC 5321, 3.1", "421 4.3.2 Too busy"},
	{"greeting EHLO", "5yz", "", refusedUs, 0, "RFC 5321, 3.1", "554 5.7.1 No SMTP service here"},
	{"TLS", "4yz", "", outbox.Network, 0, "RFC 3207, 4", "454 4.7.0 TLS not available due to temporary reason"},
	{"TLS", "5yz", "", outbox.Credentials, 0, "RFC 3207, 4", "502 5.5.1 Not implemented"},
	{"AUTH", "4yz", "", outbox.Network, 0, "RFC 4954, 6", "454 4.7.0 Temporary authentication failure"},
	{"AUTH", "5yz", "", outbox.Credentials, 0, "RFC 4954, 6", "535 5.7.8 Authentication credentials invalid"},
	{"", "530 534 535 538", "", outbox.Credentials, 0, "RFC 4954, 6", "530 5.7.0 Authentication required"},

	// Slow down.
	{"", "421 450 451 452 454", "4.4.5 4.5.3", outbox.Limit, 0, "RFC 3463, 3.5 and 3.6", "452 4.5.3 Too many recipients"},
	{"", "450 451", "4.7.x", outbox.Limit, greylisted, "RFC 6647, 5; RFC 3463, 3.8", "451 4.7.1 Greylisted"},
	{"", "421 452 454", "4.7.x", outbox.Limit, 0, "Gmail: SMTP errors and codes", "421 4.7.28 Unusual rate of mail"},
	{"", "450", "4.2.1", outbox.Limit, 0, "Gmail: SMTP errors and codes", "450 4.2.1 Receiving mail too quickly"},
	{"", "454", "", outbox.Limit, 0, "Amazon SES: sending quota errors", "454 Throttling failure: Maximum sending rate exceeded"},
	{"", "550", "5.4.5", outbox.Limit, daily, "Gmail: SMTP errors and codes", "550 5.4.5 Daily user sending limit exceeded"},

	// Not now.
	{"RCPT DATA end", "450 451", "4.2.0 -", outbox.Network, greylisted, "RFC 6647, 5", "450 4.2.0 Recipient address rejected: Greylisted"},
	{"", "4yz", "", outbox.Network, 0, "RFC 5321, 4.2.1", "452 4.3.1 Insufficient system storage"},

	// The account may not send as this sender.
	{"MAIL", "550 553", "5.7.1 -", outbox.Credentials, 0, "RFC 5321, 4.3.2: no recipient is known yet", "553 5.7.1 Not owned by user"},
	{"", "5yz", "5.1.7 5.1.8", outbox.Credentials, 0, "RFC 3463, 3.2", "550 5.1.8 Sender address rejected: Domain not found"},
	{"", "5yz", "5.7.57 5.7.60", outbox.Credentials, 0, "Exchange Online: NDR codes", "550 5.7.60 Cannot send as this sender"},

	// The message, or its recipient, will never do.
	{"", "552 523", "5.3.4 5.2.3", outbox.Rejected, 0, "RFC 3463, 3.3 and 3.4", "552 5.3.4 Message size exceeds fixed limit"},
	{"RCPT", "5yz", "5.1.x", outbox.Rejected, 0, "RFC 3463, 3.2", "550 5.1.1 User unknown"},
	{"", "5yz", "5.2.x", outbox.Rejected, 0, "RFC 3463, 3.3", "552 5.2.2 Mailbox full"},
	{"", "5yz", "5.7.x", outbox.Rejected, 0, "RFC 3463, 3.8", "550 5.7.1 Message looks like spam"},
	{"", "5yz", "5.5.x 5.6.x", outbox.Rejected, 0, "RFC 3463, 3.6 and 3.7", "555 5.5.4 Unsupported parameter"},
	{"", "5yz", "", outbox.Rejected, 0, "RFC 5321, 4.2.1", "554 Transaction failed"},
}

// failure is a reply as Send returns it. Of the text it keeps the enhanced code and nothing else.
func (t table) failure(p phase, code int, text string) *transporte.Error {
	enhanced := enhancedCode(code, text)
	shown := strings.TrimSpace(strconv.Itoa(code) + " " + enhanced)
	for _, r := range t {
		if r.fits(p, code, enhanced) {
			return &transporte.Error{Category: r.category, Code: shown, RetryAfter: r.wait}
		}
	}
	return &transporte.Error{Category: outbox.Network, Code: shown}
}

func (r row) fits(p phase, code int, enhanced string) bool {
	return oneOf(r.phases, string(p), exactly) && oneOf(r.codes, strconv.Itoa(code), likeCode) &&
		oneOf(r.enhanced, enhanced, likeEnhanced)
}

// oneOf tells whether s is like one of the words in list, or list is empty.
func oneOf(list, s string, like func(pattern, s string) bool) bool {
	if list == "" {
		return true
	}
	for pattern := range strings.FieldsSeq(list) {
		if like(pattern, s) {
			return true
		}
	}
	return false
}

func exactly(pattern, s string) bool { return pattern == s }

func likeCode(pattern, s string) bool {
	digits, _, any := strings.Cut(pattern, "y")
	return pattern == s || any && strings.HasPrefix(s, digits)
}

func likeEnhanced(pattern, s string) bool {
	start, any := strings.CutSuffix(pattern, "x")
	return pattern == s || any && strings.HasPrefix(s, start) || pattern == "-" && s == ""
}

// enhanced is an enhanced status code where it may stand: at the beginning (RFC 2034, 4).
var enhanced = regexp.MustCompile(`^([45])\.\d{1,3}\.\d{1,3}(?:\s|$)`)

// enhancedCode returns the enhanced code of a reply, empty if it has none or one that contradicts it. It does not ask
// whether the server announced them: before EHLO it cannot have done so.
func enhancedCode(code int, text string) string {
	found := enhanced.FindString(text)
	if found == "" || int(found[0]-'0') != code/100 {
		return ""
	}
	return strings.TrimSpace(found)
}

// queued is where servers name their own id for a message: Postfix and many others, Exim, Exchange; Amazon SES.
var queued = regexp.MustCompile(`(?i)(?:\bqueued as |\bid=|\bInternalId=|^Ok ([0-9a-f]{8,16}-))([a-z0-9][a-z0-9._-]{5,63})(?:[\s\]>;,)]|$)`)

// queueID returns the server's own id in the text of its last reply, empty if it shows none.
func queueID(text string) string {
	if found := queued.FindStringSubmatch(text); found != nil {
		return found[1] + found[2]
	}
	return ""
}
