package local

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestAppendNoSpace: the counted bytes of a writer on a full disk stay, and the writer goes on when
// there is space.
func TestAppendNoSpace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { test.Must(t, syscall.Unmount(root, syscall.MNT_DETACH)) })
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { test.Must(t, d.Close()) })
	full := filepath.Join(root, "full")
	test.Must(t, os.WriteFile(full, make([]byte, 512<<10), 0o600))
	w, err := d.Append(t.Context(), "f/object", 0)
	test.Must(t, err)
	n, err := w.Write(grown(0, 768<<10))
	if !errors.Is(err, storagedrivers.ErrNoSpace) || n == 0 {
		t.Fatalf("wrote %d bytes, %v, want a part", n, err)
	}
	test.Must(t, os.Remove(full))
	_, err = w.Write(grown(int64(n), 768<<10-int64(n)))
	test.Must(t, err)
	test.Must(t, errors.Join(w.Flush(t.Context()), w.Close()))
	got, err := os.ReadFile(filepath.Join(root, "f/object"))
	if err != nil || string(got) != string(grown(0, 768<<10)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
