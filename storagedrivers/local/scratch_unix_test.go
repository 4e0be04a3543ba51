//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestScratchFolderInUse: a held lock and missing support for locks are different errors.
func TestScratchFolderInUse(t *testing.T) {
	t.Parallel()
	name := t.TempDir()
	first, second := openDir(t, name), openDir(t, name)
	if err := tryLock(first); err != nil {
		t.Fatal(err)
	}
	if err := tryLock(second); !errors.Is(err, errInUse) {
		t.Errorf("locked twice: %v, want in use", err)
	}
	closed := openDir(t, name)
	closed.Close()
	if err := tryLock(closed); err == nil || errors.Is(err, errInUse) {
		t.Errorf("no lock to be had: %v, want another error than in use", err)
	}
}

func openDir(t *testing.T, name string) *os.File {
	t.Helper()
	dir, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// TestRollbackBySwapping: the replaced object is restored, and a created one is removed.
func TestRollbackBySwapping(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	for _, existing := range []string{"old", ""} {
		key := "key" + existing
		if existing != "" {
			if err := put(t, s, key, existing, storagedrivers.CreateOnly); err != nil {
				t.Fatal(err)
			}
		}
		staged, err := s.Stage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := staged.Write([]byte("mine")); err != nil {
			t.Fatal(err)
		}
		if _, err := staged.Commit(t.Context(), key, storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}); err != nil {
			t.Fatal(err)
		}
		if err := staged.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := staged.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, key))
		if string(got) != existing || existing == "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("over %q: %q, %v", existing, got, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(root, scratchPrefix+"*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
