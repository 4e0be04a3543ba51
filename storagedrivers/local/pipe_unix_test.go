//go:build unix

package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func TestWhatIsNoRegularFileIsNoObject(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	for _, key := range []string{"folder", "pipe"} {
		if _, _, err := s.Open(context.Background(), key, storagedrivers.Range{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %q: error %v, want not exist", key, err)
		}
	}
}
