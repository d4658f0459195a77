package outbox

// State is where a message stands. The values are the ones stored in the column estado.
type State string

const (
	Pending    State = "pendiente"  // waits for its time, or for the next attempt
	Processing State = "procesando" // a relay holds it under a lease
	Sent       State = "enviado"    // terminal: the destination accepted it
	Failed     State = "fallido"    // terminal: transient failures used up its attempts
	Discarded  State = "descartado" // terminal: a permanent failure, sending again could not help
)

// Terminal tells whether a message in state s is finished: no relay will touch it again.
func (s State) Terminal() bool { return s == Sent || s == Failed || s == Discarded }
