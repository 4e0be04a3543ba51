//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/storagedrivers"
)

// openNonblock prevents opening a named pipe in the root from blocking.
const openNonblock = syscall.O_NONBLOCK

// stamp sets a file's times to now, in microseconds. A file system's own clock is too coarse to
// distinguish two generations of a key.
func stamp(file *os.File, now time.Time) error {
	now = now.Truncate(time.Microsecond)
	if stampDescriptor(file, now) == nil {
		return nil
	}
	at := unix.NsecToTimeval(now.UnixNano())
	return unix.Futimes(int(file.Fd()), []unix.Timeval{at, at})
}

func inode(stat fs.FileInfo) uint64 {
	if sys, ok := stat.Sys().(*syscall.Stat_t); ok {
		return sys.Ino
	}
	return 0
}

// device returns the number of the file system.
func device(stat fs.FileInfo) uint64 {
	if sys, ok := stat.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Dev) //nolint:unconvert // signed on some systems
	}
	return 0
}

// links returns the number of names of a file.
func links(stat fs.FileInfo) uint64 {
	if sys, ok := stat.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink) //nolint:unconvert // 16 bits on some systems
	}
	return 1
}

// lockFile locks the file of a growing object. The error is errInUse if another writer holds the
// lock.
func lockFile(file *os.File) error {
	err := tryLock(file)
	if err != nil && !errors.Is(err, errInUse) {
		return fmt.Errorf("locking: %w: %w", errors.ErrUnsupported, err)
	}
	return err
}

func unlockFile(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_UN) }

// tryLock locks a scratch folder. The error is errInUse if another process holds the lock, and
// another one if the file system has no locks.
func tryLock(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

// removeFolder removes an empty folder, and never a file. [os.Root.Remove] would take an object
// that got the name meanwhile.
func removeFolder(parent *os.File, name string) error {
	return unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
}

func syncFolder(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) { // a file system that has no such thing
		return nil
	}
	return err
}

func writable(dir *os.File) error {
	return unix.Faccessat(int(dir.Fd()), ".", unix.W_OK|unix.X_OK, 0)
}

func systemSentinel(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return nil
	}
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return storagedrivers.ErrNoSpace
	case syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EILSEQ:
		return storagedrivers.ErrInvalidKey
	case syscall.EROFS:
		return fs.ErrPermission
	case syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EMFILE, syscall.ENFILE:
		return storagedrivers.ErrUnavailable
	default:
		return nil
	}
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
