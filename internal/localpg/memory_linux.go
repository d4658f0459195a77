package localpg

import (
	"os"
	"syscall"
)

// dataFolder is the memory file system where it has room (a container's often has 64 MiB), else os.TempDir.
func dataFolder() string {
	const memory, room = "/dev/shm", 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < room {
		return os.TempDir()
	}
	return memory
}
