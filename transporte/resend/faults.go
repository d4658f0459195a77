package resend

import (
	"time"

	"github.com/mafesoftware/outbox-relay/internal/httpsend"
	"github.com/mafesoftware/outbox-relay/outbox"
)

// faults is https://resend.com/docs/api-reference/errors, with the names before August 2026 too. The status decides, for
// validation_error comes with four of them; the names stand here to be found, and where one differs from its status.
//
// A 404 or 405 can only be a wrong BaseURL, as nothing but emails is asked for. A 409
// without a known name is taken for one about the key, which is about an email that may have left already.
var faults = httpsend.Table{
	{Status: "400", Code: "invalid_idempotency_key", Category: outbox.Rejected},
	{Status: "400", Code: "validation_error", Mentions: "api key", Category: outbox.Credentials},
	{Status: "400", Code: "validation_error", Category: outbox.Rejected},

	{Status: "401", Code: "missing_api_key restricted_api_key validation_error", Category: outbox.Credentials},
	{Status: "403", Code: "invalid_api_key suspended_api_key invalid_permission validation_error", Category: outbox.Credentials},
	{Status: "401 403", Category: outbox.Credentials},

	{Status: "404", Code: "not_found", Category: outbox.Rejected},
	{Status: "405", Code: "method_not_allowed", Category: outbox.Rejected},

	{Status: "409", Code: "concurrent_idempotent_requests", Category: outbox.IdempotencyConflict, Wait: time.Minute},
	{Status: "409", Code: "invalid_idempotent_request", Category: outbox.IdempotencyConflict},
	{Status: "409", Code: "resource_locked", Category: outbox.Network},
	{Status: "409", Category: outbox.IdempotencyConflict},

	{Status: "413", Category: outbox.Rejected},
	{Status: "422", Code: "missing_required_field missing_required_parameter invalid_parameter invalid_attachment " +
		"invalid_from_address invalid_access invalid_region validation_error", Category: outbox.Rejected},

	{Status: "429", Code: "rate_limit_exceeded", Category: outbox.Limit},
	{Status: "429", Code: "daily_quota_exceeded", Category: outbox.Limit, Wait: time.Hour},
	// Billing would discard emails that an upgrade lets through.
	{Status: "429", Code: "monthly_quota_exceeded", Category: outbox.Limit, Wait: 6 * time.Hour},
	{Status: "429", Category: outbox.Limit},

	{Status: "451", Code: "security_error", Category: outbox.Rejected},
	{Status: "408 425", Category: outbox.Network},
	{Status: "4xx", Category: outbox.Rejected},

	{Status: "500 503", Code: "application_error internal_server_error service_unavailable", Category: outbox.Network, Uncertain: true},
	{Status: "5xx", Category: outbox.Network, Uncertain: true},
}
