package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestLevel: hidden folders and links to folders are not listed, empty folders are.
func TestLevel(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, folder := range []string{".hidden", "a/.hidden", "a/empty", "a/end.", "a/in/deep", "b"} {
		test.Must(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	test.Must(t, os.Symlink("b", filepath.Join(root, "a/link")))
	s := open(t, root)
	test.Must(t, put(t, s, "a/object", "x", storagedrivers.CreateOnly))
	for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
		page, err := s.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
		if err != nil || !slices.Equal(page.Folders, want) {
			t.Errorf("folders of %q: %q, want %q, error %v", prefix, page.Folders, want, err)
		}
	}
}
