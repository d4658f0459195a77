package transporte

import "github.com/mafesoftware/outbox-relay/outbox"

// render calls f, the user's function that turns a message into what is sent. An error or a panic of f is permanent: the
// same row would fail the same way on every attempt. Its text ends here, since it may quote the row.
func render[T any](f func(Message) (T, error), m Message) (result T, err error) {
	failed := &Error{Category: outbox.TemplateFault, Code: "render"}
	defer func() {
		if recover() != nil {
			err = failed
		}
	}()
	if result, err = f(m); err != nil {
		return result, failed
	}
	return result, nil
}
