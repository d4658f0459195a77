package tests

import (
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
