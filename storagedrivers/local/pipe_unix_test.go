//go:build unix

package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestWhatIsNoRegularFileIsNoObject(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	test.Must(t, os.Mkdir(filepath.Join(root, "folder"), 0o755))
	test.Must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	s := open(t, root)
	for _, key := range []string{"folder", "pipe"} {
		_, _, err := s.Open(context.Background(), key, storagedrivers.Range{})
		test.Is(t, err, fs.ErrNotExist, "open", key)
	}
}
