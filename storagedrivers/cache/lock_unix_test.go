//go:build unix

package cache

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestLockOfChild: the folder of a closed store is free, also while a child process that has just
// been forked shares its open files.
func TestLockOfChild(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder, 0)
	if !s.ready() {
		t.Fatal("the folder is not owned")
	}
	child, err := unix.Dup(int(s.lockFile.Fd()))
	test.Must(t, err)
	defer unix.Close(child)
	test.Is(t, s.Close(), nil)
	if !open(t, folder, 0).ready() {
		t.Error("the folder is in use after the store was closed")
	}
}
