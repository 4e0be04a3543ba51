//go:build unix

package mediaapp

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxOpenFiles returns how many files the process may have open.
func maxOpenFiles() int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return someFiles
	}
	return int64(min(uint64(limit.Cur), math.MaxInt32))
}

// someFiles is the usual limit of old systems.
const someFiles = 1024
