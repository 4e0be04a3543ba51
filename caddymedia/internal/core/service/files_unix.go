//go:build unix

package service

import "golang.org/x/sys/unix"

// MaxOpenFiles returns how many files and connections the process may have open.
func MaxOpenFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return someFiles
	}
	return int(min(uint64(limit.Cur), unlimitedFiles)) //nolint:unconvert // FreeBSD has an int64
}

// someFiles is the usual limit of old systems.
const someFiles = 1024
