//go:build unix

package local

import (
	"errors"
	"os"
	"testing"

	"github.com/caddymedia/media/internal/test"
)

// TestScratchFolderInUse: a held lock and missing support for locks are different errors.
func TestScratchFolderInUse(t *testing.T) {
	t.Parallel()
	name := t.TempDir()
	first, second := openDir(t, name), openDir(t, name)
	test.Must(t, tryLock(first))
	test.Is(t, tryLock(second), errInUse, "locked twice")
	closed := openDir(t, name)
	closed.Close()
	if err := tryLock(closed); err == nil || errors.Is(err, errInUse) {
		t.Errorf("no lock to be had: %v, want another error than in use", err)
	}
}

func openDir(t *testing.T, name string) *os.File {
	t.Helper()
	dir, err := os.Open(name)
	test.Must(t, err)
	t.Cleanup(func() { dir.Close() })
	return dir
}
