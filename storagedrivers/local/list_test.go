package local

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestLevel: hidden folders and links to folders are not listed, empty folders are.
func TestLevel(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, folder := range []string{".hidden", "a/.hidden", "a/empty", "a/end.", "a/in/deep", "b"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b", filepath.Join(root, "a/link")); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	if err := put(t, s, "a/object", "x", storagedrivers.CreateOnly); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
		page, err := s.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
		if err != nil || !slices.Equal(page.Folders, want) {
			t.Errorf("folders of %q: %q, want %q, error %v", prefix, page.Folders, want, err)
		}
	}
}

// BenchmarkListLevel lists a page from the middle of a large folder.
func BenchmarkListLevel(b *testing.B) {
	root := b.TempDir()
	for i := range 10_000 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("object-%05d.jpg", i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	d := New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
	defer d.Close()
	opts := storagedrivers.ListOptions{Cursor: "object-05000.jpg", Limit: 60, Shallow: true}
	for b.Loop() {
		page, err := d.List(b.Context(), opts)
		if err != nil || len(page.Objects) != 60 {
			b.Fatalf("%d objects, error %v", len(page.Objects), err)
		}
	}
}
