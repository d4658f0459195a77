//go:build !linux

package localpg

import "os"

func dataFolder() string { return os.TempDir() }
