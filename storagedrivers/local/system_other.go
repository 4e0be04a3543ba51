//go:build !unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

const openNonblock = 0

func stamp(file *os.File, now time.Time) error { return os.Chtimes(file.Name(), now, now) }

func inode(fs.FileInfo) uint64 { return 0 }

func device(fs.FileInfo) uint64 { return 0 }

func links(fs.FileInfo) uint64 { return 1 }

func lockFile(*os.File) error { return errors.ErrUnsupported }

func unlockFile(*os.File) error { return nil }

// tryLock locks nothing, because there are no locks. It returns errors.ErrUnsupported for a folder
// that is less than a day old, which may be in use.
func tryLock(dir *os.File) error {
	stat, err := dir.Stat()
	if err != nil {
		return err
	}
	if time.Since(stat.ModTime()) < 24*time.Hour {
		return errors.ErrUnsupported
	}
	return nil
}

// removeFolder removes nothing: there is no call that spares files.
func removeFolder(*os.File, string) error { return errors.ErrUnsupported }

// syncFolder does nothing, because the system itself journals names.
func syncFolder(*os.File) error { return nil }

func writable(*os.File) error { return nil }

func systemSentinel(error) error { return nil }

func isNotDir(error) bool { return false }
