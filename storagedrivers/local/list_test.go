package local

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

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

// BenchmarkList lists a folder of 100,000 names. A cold page is the first one after a change.
func BenchmarkList(b *testing.B) {
	const files = 100_000
	root := b.TempDir()
	for i := range files {
		test.Must(b, os.WriteFile(filepath.Join(root, fmt.Sprintf("object-%06d.jpg", i)), nil, 0o600))
	}
	d := New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
	b.Cleanup(func() { d.Close() })
	time.Sleep(settleTime)
	page := func(b *testing.B, opts storagedrivers.ListOptions) (int, string) {
		page, err := d.List(b.Context(), opts)
		test.Must(b, err)
		return len(page.Objects), page.Next
	}
	page(b, storagedrivers.ListOptions{Limit: 60, Shallow: true})
	for name, opts := range map[string]storagedrivers.ListOptions{
		"first": {Limit: 60, Shallow: true},
		"later": {Limit: 60, Shallow: true, Cursor: "object-050000.jpg"},
	} {
		b.Run(name+" page", func(b *testing.B) {
			for b.Loop() {
				page(b, opts)
			}
		})
	}
	b.Run("cold page", func(b *testing.B) {
		for b.Loop() {
			d.current.names.Clear()
			page(b, storagedrivers.ListOptions{Limit: 60, Shallow: true})
		}
	})
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			found, opts := 0, storagedrivers.ListOptions{}
			for more := true; more; more = opts.Cursor != "" {
				var n int
				n, opts.Cursor = page(b, opts)
				found += n
			}
			if found != files {
				b.Fatalf("%d objects, want %d", found, files)
			}
		}
	})
}
