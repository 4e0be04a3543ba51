package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestRemoveNoSpace: several objects can be removed together from a disk without space for a
// record, in the given order.
func TestRemoveNoSpace(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"blocks": "size=256k", "inodes": "size=1m,nr_inodes=40"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if err := syscall.Mount("tmpfs", root, "tmpfs", 0, options); err != nil {
				t.Skipf("mounting a small disk: %v", err)
			}
			t.Cleanup(func() { test.Must(t, syscall.Unmount(root, syscall.MNT_DETACH)) })
			s := open(t, root)
			keys := []string{"a.webp", "a", "folder/b.webp", "folder/b"}
			for _, key := range keys {
				test.Must(t, put(t, s, key, "content", storagedrivers.CreateOnly))
			}
			fill(t, root)
			for i := range 2 {
				_, err := s.Commit(t.Context(), storagedrivers.Change{Key: keys[2*i]}, storagedrivers.Change{Key: keys[2*i+1]})
				test.Must(t, err)
			}
			for _, key := range keys {
				_, err := s.Stat(t.Context(), key)
				test.Is(t, err, fs.ErrNotExist, key)
			}
		})
	}
}

// fill fills a disk with files.
func fill(t *testing.T, root string) {
	t.Helper()
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(root, "full"+strconv.Itoa(i)), make([]byte, 4<<10), 0o600)
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		test.Must(t, err)
	}
}
