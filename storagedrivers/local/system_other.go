//go:build !unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

const openNonblock = 0

func stamp(file *os.File, now time.Time) error { return os.Chtimes(file.Name(), now, now) }

func inode(fs.FileInfo) uint64 { return 0 }

func device(fs.FileInfo) uint64 { return 0 }

// tryLock: without locks a folder counts as in use until it is a day old.
func tryLock(dir *os.File) error {
	stat, err := dir.Stat()
	if err != nil {
		return err
	}
	if time.Since(stat.ModTime()) < storagedrivers.LeftoverAge {
		return errors.ErrUnsupported
	}
	return nil
}

// syncFolder: the system journals names by itself.
func syncFolder(*os.File) error { return nil }

func writable(*os.File) error { return nil }
