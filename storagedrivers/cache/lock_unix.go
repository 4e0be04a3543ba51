//go:build unix

package cache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file until unlock is called. The error is errInUse if another process holds the
// lock.
func lock(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

// unlock unlocks a file. Closing it would not be enough while a child process that was just forked
// shares it, flock(2).
func unlock(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_UN) }
