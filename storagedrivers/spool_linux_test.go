package storagedrivers_test

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestSpoolFull: a full spool folder is ErrNoSpace.
func TestSpoolFull(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting: %v", err)
	}
	t.Cleanup(func() { is(t, syscall.Unmount(dir, 0), nil) })
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: dir})
	for _, size := range []int{mib / 2, 4 * mib} { // full while it is written, and when memory moves there
		staged := stage(t, s)
		var err error
		for n := 0; n < 4*mib && err == nil; n += size {
			_, err = io.WriteString(staged, strings.Repeat("x", size))
		}
		is(t, err, storagedrivers.ErrNoSpace)
		is(t, err, syscall.ENOSPC)
		is(t, staged.Close(), nil)
	}
	fill(t, dir)
	staged := stage(t, s, strings.Repeat("x", mib))
	_, err := io.WriteString(staged, "x")
	is(t, err, storagedrivers.ErrNoSpace)
	is(t, staged.Close(), nil)
}

// fill fills the file system of dir.
func fill(t *testing.T, dir string) {
	t.Helper()
	file, err := os.CreateTemp(dir, "full")
	is(t, err, nil)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	is(t, err, syscall.ENOSPC)
	is(t, file.Close(), nil)
}
