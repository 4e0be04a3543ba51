package storagedrivers_test

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
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
	t.Cleanup(func() { test.Is(t, syscall.Unmount(dir, 0), nil) })
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: dir})
	for _, size := range []int{mib / 2, 4 * mib} { // full while it is written, and when memory moves there
		staged := stage(t, s)
		var err error
		for n := 0; n < 4*mib && err == nil; n += size {
			_, err = io.WriteString(staged, strings.Repeat("x", size))
		}
		test.Is(t, err, storagedrivers.ErrNoSpace)
		test.Is(t, err, syscall.ENOSPC)
		test.Is(t, staged.Close(), nil)
	}
	fill(t, dir)
	staged := stage(t, s, strings.Repeat("x", mib))
	_, err := io.WriteString(staged, "x")
	test.Is(t, err, storagedrivers.ErrNoSpace)
	test.Is(t, staged.Close(), nil)
}

// fill fills the file system of dir.
func fill(t *testing.T, dir string) {
	t.Helper()
	file, err := os.CreateTemp(dir, "full")
	test.Is(t, err, nil)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	test.Is(t, err, syscall.ENOSPC)
	test.Is(t, file.Close(), nil)
}
