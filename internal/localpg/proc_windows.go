package localpg

import (
	"errors"
	"syscall"
)

func serverAccount() (account, error) {
	return account{}, errors.New("no server can be started on Windows: set DATABASE_URL to one that runs")
}

func (account) attributes() *syscall.SysProcAttr { return ownGroup() }

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
