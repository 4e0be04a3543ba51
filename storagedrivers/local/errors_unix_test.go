//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
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
		test.Is(t, got, want, errno)
	}
	test.Is(t, mapReadError(&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}), fs.ErrNotExist, "below a file")
}

// TestMissingPermission: the cause names the folder and the system user, the error does not.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	d := &Driver{path: "/srv/media"}
	err := d.explained(fmt.Errorf("writing to the root: %w", fs.ErrPermission))
	if cause := string(storagedrivers.CauseOf(err)); !strings.Contains(cause, "/srv/media") || !strings.Contains(cause, "system user ") {
		t.Errorf("the cause is %q", cause)
	}
	if text := err.Error(); strings.Contains(text, "/srv") || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the error is %q", text)
	}
	if err := d.explained(fs.ErrNotExist); storagedrivers.CauseOf(err) != "" {
		t.Errorf("another error has the cause %q", storagedrivers.CauseOf(err))
	}
	if os.Getuid() != 0 { // root may write everywhere
		folder := t.TempDir()
		test.Must(t, os.Chmod(folder, 0o500))
		closed := New(Config{Root: folder}, slog.New(slog.DiscardHandler))
		defer closed.Close()
		if cause := string(storagedrivers.CauseOf(closed.Check(t.Context()))); !strings.Contains(cause, folder) {
			t.Errorf("the cause of a check is %q", cause)
		}
	}
}
