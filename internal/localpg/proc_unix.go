//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// serverAccount gives the account that runs Postgres: the caller's own, or for root, as which Postgres refuses to run,
// postgres or else nobody.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return account{}, errors.New("root cannot run Postgres and there is no account postgres or nobody: use another account")
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return account{}, fmt.Errorf("account %s: %w", u.Username, err)
	}
	return account{uid: uid, gid: gid}, nil
}

// attributes start a process under a, in a group of its own so that Ctrl-C does not reach it.
func (a account) attributes() *syscall.SysProcAttr {
	attr := ownGroup()
	if a.uid != os.Geteuid() {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
