// Package tests holds what needs several packages, several relays or a hurt database.
package tests

import (
	"flag"
	"os"
	"testing"

	"github.com/mafesoftware/outbox-relay/internal/localpg/pgtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		child(dsn)
		return
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen { // these tests wait for outages rather than compute
		if err := flag.Set("test.parallel", "12"); err != nil {
			panic(err)
		}
	}
	pgtest.Main(m)
}
