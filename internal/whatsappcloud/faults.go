package whatsappcloud

import (
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// SyncingTemplate is the category of a template that Meta does not know yet everywhere. It is transient.
const SyncingTemplate = "plantilla_sincronizando"

// parameterFaults are codes that say that something in the request is wrong, and only their text says what.
const parameterFaults = "100 131008 131009 131051 131052 131053 135000"

// pairLimit is for too many messages from one number to another. One is allowed every 6 s, and whoever comes too soon shall
// wait four times as long as the time before.
const (
	pairLimit     = "131056"
	firstPairWait = 6 * time.Second
)

// Faults is https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes/. The code decides and not the
// status: throttling comes with 400 as well as with 429. A code that is not here is judged by its status if that says
// enough, and is transient otherwise, so that one that Meta invents tomorrow discards nothing.
var Faults = httpsend.Table{
	// The token or its rights.
	{Code: "0 102 190", Category: outbox.Credentials},
	{Code: "3 10 2xx", Category: outbox.Credentials},
	{Code: "131005", Category: outbox.Credentials},
	// The number that we send from: its id, its registration, its name, its standing.
	{Code: "33 100/33", Category: outbox.Credentials},
	{Code: "133010", Category: outbox.Credentials},
	{Code: "133000 133005 133006 133008 133009 133015", Category: outbox.Credentials},
	{Code: "131037 131045", Category: outbox.Credentials},
	{Code: "368 131031", Category: outbox.Credentials},
	{Code: "130497", Category: outbox.Rejected},
	{Code: "131042 134011", Category: outbox.Billing},

	// Too fast.
	{Code: "4 80007 80008 130429", Category: outbox.Limit},
	{Code: pairLimit, Category: outbox.Limit, Wait: firstPairWait}, // and then ever longer: see pairWait
	{Code: "131048", Category: outbox.Limit, Wait: time.Hour},
	{Code: "131049", Category: outbox.Limit, Wait: 24 * time.Hour}, // sooner makes the number's quality worse
	{Code: "133016", Category: outbox.Limit},
	{Code: "132069", Category: outbox.Limit, Wait: time.Hour},

	// Their side.
	{Code: "1 131000", Category: outbox.Network, Uncertain: true},
	{Code: "2 131016 131057 133004", Category: outbox.Network},
	{Status: "5xx", Code: "135000", Category: outbox.Network, Uncertain: true},

	// The recipient.
	{Code: "131026", Category: outbox.Number},
	{Code: "131021", Category: outbox.Number},
	{Code: "131030", Category: outbox.Number},
	{Code: "130472", Category: outbox.Rejected},
	{Code: "131050", Category: outbox.Rejected},
	{Code: "131047", Category: outbox.Window},

	// The template.
	{Code: "132000", Category: outbox.TemplateFault},
	{Code: "132001", Category: outbox.TemplateFault},
	{Code: "132005", Category: outbox.TemplateFault},
	{Code: "132007", Category: outbox.TemplateFault},
	{Code: "132012 132018", Category: outbox.TemplateFault},
	{Code: "132015", Category: outbox.TemplateFault},
	{Code: "132016", Category: outbox.TemplateFault},
	{Code: "132068", Category: outbox.TemplateFault},
	{Code: "134101", Category: SyncingTemplate, Wait: 10 * time.Minute},
	{Code: "134102", Category: outbox.TemplateFault},

	{Code: "132xxx", Category: outbox.TemplateFault},
	{Code: "133xxx", Category: outbox.Credentials},

	{Code: parameterFaults, Mentions: "template", Category: outbox.TemplateFault},
	{Code: parameterFaults, Mentions: "parameter name missing", Category: outbox.TemplateFault}, // it has names, we sent positions
	{Code: parameterFaults, Mentions: "recipient", Category: outbox.Number},
	{Code: parameterFaults, Category: outbox.Rejected},

	// No code that is known.
	{Status: "401 403", Category: outbox.Credentials},
	{Status: "404", Code: httpsend.None, Category: outbox.Credentials}, // the number's id in the path
	{Status: "429", Category: outbox.Limit},
	{Status: "408 425", Category: outbox.Network},
	{Status: "5xx", Category: outbox.Network, Uncertain: true},
	{Status: "4xx", Code: httpsend.None, Mentions: "template", Category: outbox.TemplateFault},
	{Status: "4xx", Code: httpsend.None, Mentions: "24 window", Category: outbox.Window},
	{Status: "4xx", Code: httpsend.None, Mentions: "phone", Category: outbox.Number},
	{Status: "4xx", Code: httpsend.None, Mentions: "recipient", Category: outbox.Number},
	{Status: "4xx", Code: httpsend.None, Category: outbox.Rejected},
}
