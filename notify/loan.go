package notify

import "github.com/jackc/pgx/v5"

// Loan is the session that listens, lent for one claim to a relay that was asleep when a notification came: its server
// process has just been awake, and no connection of the pool need be waited for. Whoever takes it gives it back in less
// time than a probe may take, since nothing is heard meanwhile.
type Loan struct {
	Conn *pgx.Conn

	h    *handler
	back chan struct{}
}

// Lent gives the loans. Only a relay that waits here at the moment gets one, the others a wake-up.
func (b *Bell) Lent() <-chan *Loan { return b.lent }

// Refuse ends the loans of this session, which could not claim.
func (l *Loan) Refuse() { l.h.loans.Store(refused) }

// Return gives the session back. It is called once.
func (l *Loan) Return() { close(l.back) }

// Whether a session is lent. Not before it has heard what the pool said: only then it is one with the pool's database, and
// behind no pooler that would keep what is set in it.
const (
	unproven int32 = iota
	proven
	refused // it could not claim
)

// wake wakes the relay for what was announced.
func (h *handler) wake(conn *pgx.Conn) {
	if h.loans.Load() == proven {
		loan := &Loan{Conn: conn, h: h, back: make(chan struct{})}
		select {
		case h.l.Bell.lent <- loan:
			<-loan.back
			return
		default:
		}
	}
	h.l.Bell.ring(Notified)
}
