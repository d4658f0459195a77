package outbox

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalidOptions is wrapped by every error that a wrong argument, field or option causes. The message names the
	// field and its bound. Nothing was sent to the database.
	ErrInvalidOptions = errors.New("invalid options")

	// ErrTransactionRequired says that the transaction given to Enqueue has already ended or has failed, so the message
	// could not have become visible together with the business fact. Begin a new transaction and run it all again.
	ErrTransactionRequired = errors.New("a transaction that is open and has not failed is required")

	// ErrConflict says that another transaction committed the same tenant and idempotency key after this transaction took
	// its snapshot (repeatable read or serializable only). Run the whole transaction again; it will find the message.
	ErrConflict = errors.New("the same idempotency key was committed by a concurrent transaction: run this transaction again")

	// ErrSchema says that the outbox table is missing, lacks a column or an index, or is older than this package needs.
	// The message says which, and the command that mends it.
	ErrSchema = errors.New("the outbox table does not fit")
)

// OptionError names the field that is out of its bounds. It wraps ErrInvalidOptions. Errors about a field of this package's
// structs and of relay.Options are of this type.
type OptionError struct {
	Field  string // Options.Batch
	Reason string // must be at least 1, got -1
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%v: %s %s", ErrInvalidOptions, e.Field, e.Reason)
}

func (e *OptionError) Unwrap() error { return ErrInvalidOptions }

func invalidField(field, format string, args ...any) error {
	return &OptionError{field, fmt.Sprintf(format, args...)}
}
