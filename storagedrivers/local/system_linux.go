package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openUnnamed opens a file without a name on the file system of the root:
// errors.ErrUnsupported where there are none.
func openUnnamed(root *os.Root) (*os.File, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil { // linkUnnamed needs it
		return nil, errors.ErrUnsupported
	}
	file, err := root.OpenFile(".", unix.O_TMPFILE|os.O_RDWR, filePerm)
	// A kernel or file system without O_TMPFILE sees a folder opened for writing.
	for _, lacking := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT} {
		if errors.Is(err, lacking) {
			return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
	}
	return file, err
}

// linkUnnamed gives an unnamed file a name that must be free. It goes through /proc
// because AT_EMPTY_PATH needs a privilege, linkat(2).
func linkUnnamed(file, dir *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, procPath(file), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
}

// exchange swaps two names in one step, renameat2(2): fs.ErrNotExist where one is
// missing, errors.ErrUnsupported where the file system cannot.
func exchange(oldDir *os.File, oldName string, newDir *os.File, newName string) error {
	err := unix.Renameat2(int(oldDir.Fd()), oldName, int(newDir.Fd()), newName, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// beginWriting asks the disk to begin with a part of a file without waiting for it. It
// is a hint: an error shows when the file is synced.
func beginWriting(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}

func procPath(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }
