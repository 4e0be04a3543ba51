//go:build unix

package mediahttp

import "golang.org/x/sys/unix"

// maxDescriptors returns how many files and connections the process may have open.
func maxDescriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return unlimited
	}
	return int(min(uint64(limit.Cur), unlimited))
}
