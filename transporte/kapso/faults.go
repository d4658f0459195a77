package kapso

import (
	"slices"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/internal/whatsappcloud"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// ownFaults are Kapso's own answers, {"error":"text"} without a code. They stand before Meta's, since the texts about
// payment speak of templates too: https://docs.kapso.ai/docs/whatsapp/payment-method-troubleshooting. For its 429 see
// https://docs.kapso.ai/api/rate-limits.
var ownFaults = httpsend.Table{
	{Status: "402", Category: outbox.Billing}, // paid messages stop until somebody mends the payment method
	{Status: "4xx", Code: httpsend.None, Mentions: "payment", Category: outbox.Billing},
	{Status: "4xx", Code: httpsend.None, Mentions: "account eligible", Category: outbox.Billing},
}

var faults = slices.Concat(ownFaults, whatsappcloud.Faults)
