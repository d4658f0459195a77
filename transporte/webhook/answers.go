package webhook

import (
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// answers is "Handling delivery failures" of Standard Webhooks 1.0.0
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md): every status but 2xx is
// tried again, 410 is the end of the endpoint, 429, 502 and 504 ask to slow down.
//
// What is not here is transient, in a category of its own: http_301 (no redirect is followed: change the URL), http_401,
// http_404, http_422 ... An endpoint that refuses a message today may take it after its next deployment.
var answers = httpsend.Table{
	{Status: "410", Category: outbox.Rejected},
	{Status: "413", Category: outbox.Rejected}, // the body will not get shorter
	{Status: "429", Category: outbox.Limit},
	{Status: "408 425", Category: outbox.Network},
	{Status: "502 504", Category: outbox.Network, Wait: time.Minute, Uncertain: true},
	{Status: "5xx", Category: outbox.Network, Uncertain: true},
}
