package sftp

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestLevel: hidden folders and links to folders are not listed, empty folders are.
func TestLevel(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, folder := range []string{".hidden", "a/.hidden", "a/empty", "a/end.", "a/in/deep", "b"} {
		if err := os.MkdirAll(filepath.Join(h.folder, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../b", filepath.Join(h.folder, "a/link")); err != nil {
		t.Fatal(err)
	}
	d := h.driver(t, ".")
	t.Cleanup(func() { is(t, d.Close(), nil) })
	for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
		if err != nil || !slices.Equal(page.Folders, want) || len(page.Objects) > 0 {
			t.Errorf("level %q: %+v, want the folders %q, error %v", prefix, page, want, err)
		}
	}
}
