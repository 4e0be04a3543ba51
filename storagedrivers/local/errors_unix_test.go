//go:build unix

package local

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func TestMapError(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOSPC: storagedrivers.ErrNoSpace, syscall.EDQUOT: storagedrivers.ErrNoSpace,
		syscall.ENAMETOOLONG: storagedrivers.ErrInvalidKey, syscall.ELOOP: storagedrivers.ErrInvalidKey,
		syscall.EROFS: fs.ErrPermission, syscall.EACCES: fs.ErrPermission,
		syscall.ENOENT: fs.ErrNotExist, syscall.EEXIST: fs.ErrExist,
		syscall.ESTALE: storagedrivers.ErrUnavailable, syscall.EMFILE: storagedrivers.ErrUnavailable,
		syscall.EIO: syscall.EIO,
	} {
		got := mapError(&fs.PathError{Op: "open", Path: "x", Err: errno})
		if !errors.Is(got, want) {
			t.Errorf("%v: got %v, want %v", errno, got, want)
		}
	}
	if err := mapReadError(&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: got %v, want not exist", err)
	}
}
