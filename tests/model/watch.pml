/* The watch lock of docs/design.md for the model checker Spin: writers, relays, and what the server does with the
 * advisory locks W (watch), X (crossing) and R (role).
 *
 *   make model        the model must have no error, and each of its mutants must have one
 *
 * A "try shared" fails while the lock is held or waited for exclusively. A commit becomes visible before its locks are
 * given back, and a notification arrives after that, at every relay. A session that dies gives its locks back; the relay
 * that used it goes on. The fallback poll is left out on purpose: it must not be needed.
 *
 * Mutants: NO_CROSSING (the relay does not wait for X), W_KEPT (it gives W back only after X), W_FIRST (the writer tries W
 * before X), FORGET_CROSSING (the relay does not make up for the crossing when its session has died).
 */
#ifndef WRITERS
#define WRITERS 3
#endif
#ifndef RELAYS
#define RELAYS 1
#endif

byte sharedW, sharedX;                              /* writers that share the lock */
bool exclusiveW, exclusiveX, waitingW, waitingX;    /* the relay that has R */
bool role;                                          /* R is taken */
byte visible;                                       /* committed rows that nobody has claimed */
byte bell[RELAYS];                                  /* notifications under way to each relay */
byte finished, asleep;

inline claim() { atomic { visible = 0 } }

inline ring() {
  atomic { i = 0; do :: i < RELAYS -> if :: bell[i] < 2 -> bell[i]++ :: else fi; i++ :: else -> break od; i = 0 }
}

active [WRITERS] proctype writer() {
  bool hasW = false, hasX = false, rings = false;
  byte i;
#ifdef W_FIRST
  atomic { if :: exclusiveW || waitingW -> skip
              :: else -> sharedW++; hasW = true; rings = true fi }
  atomic { if :: exclusiveX || waitingX -> rings = true
              :: else -> sharedX++; hasX = true fi }
#else
  atomic { if :: exclusiveX || waitingX -> rings = true
              :: else -> sharedX++; hasX = true fi }
  if
  :: rings -> skip
  :: else -> atomic { if :: exclusiveW || waitingW -> skip            /* a relay watches: stay silent */
                         :: else -> sharedW++; hasW = true; rings = true fi }
  fi;
#endif
  if
  :: true -> atomic { visible++ }                                     /* commit */
  :: true -> rings = false                                            /* roll back */
  fi;
  atomic { if :: hasW -> sharedW-- :: else fi; if :: hasX -> sharedX-- :: else fi }
  if :: rings -> ring() :: else fi;
  atomic { finished++ }
}

inline watch() {                /* ends with the session alive, or dead and with it W and R */
  dead = false;
  atomic { waitingW = true }
  do
  :: claim()
  :: atomic { waitingW && sharedW == 0 -> waitingW = false; exclusiveW = true }
  :: atomic { waitingW -> waitingW = false; break }                     /* lock_timeout, and quiet */
  :: exclusiveW -> break                                               /* quiet */
  :: atomic { waitingW = false; exclusiveW = false; role = false; dead = true; break }
  od
}

inline cross() {
#ifndef NO_CROSSING
  atomic { waitingX = true }
  do
  :: claim()
  :: atomic { waitingX && sharedX == 0 -> waitingX = false; exclusiveX = true; break }
  od;
#endif
  claim();
  atomic { waitingX = false; exclusiveX = false }
#ifdef W_KEPT
  atomic { waitingW = false; exclusiveW = false }
#endif
  role = false
}

active [RELAYS] proctype relay() {
  bool dead = false, mine;
  byte me = _pid - WRITERS;
  do
  :: atomic { asleep++; bell[me] > 0 -> asleep--; bell[me] = 0 }
     claim();
     if
     :: true -> skip                                                  /* not busy: back to sleep */
     :: true ->
        atomic { mine = !role; if :: mine -> role = true :: else fi }
        if
        :: !mine -> skip                                              /* another relay watches */
        :: else ->
           watch();
           if
           :: dead ->
#ifndef FORGET_CROSSING
              atomic { mine = !role; if :: mine -> role = true :: else fi }   /* a new session */
              if :: mine -> cross() :: else -> claim() fi
#else
              claim()
#endif
           :: else ->
#ifndef W_KEPT
              atomic { waitingW = false; exclusiveW = false }         /* W first, ... */
#endif
              cross()                                                 /* ... then X */
           fi
        fi
     fi
  od
}

/* Never: every writer has finished, every relay sleeps, no notification is under way, and a row is left. */
#if RELAYS == 1
#define quiet (bell[0] == 0)
#else
#define quiet (bell[0] == 0 && bell[1] == 0)
#endif
never {
  do
  :: finished == WRITERS && asleep == RELAYS && quiet && visible > 0 -> break
  :: else
  od
}
