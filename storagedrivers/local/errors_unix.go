//go:build unix

package local

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/caddymedia/media/storagedrivers"
)

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
