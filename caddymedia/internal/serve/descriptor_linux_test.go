package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// TestStalledReaderHoldsNoDescriptor: the file of a small item, or of a small range, is closed before
// the first byte is written, so that a client that does not read holds none.
func TestStalledReaderHoldsNoDescriptor(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := storagedrivers.New("test", local.New(local.Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	content := strings.Repeat("0123456789", smallItem/4)
	if _, err := s.Put(t.Context(), "a.txt", strings.NewReader(content), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "b.txt", strings.NewReader(text), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		key, ranges, want string
		open              bool
	}{
		{"a.txt", "", content, true},
		{"a.txt", "bytes=100003-100012", "3456789012", false},
		{"b.txt", "", text, false},
		{"b.txt", "bytes=5-", text[5:], false},
	} {
		object, err := s.OpenSeeker(t.Context(), tt.key)
		if err != nil {
			t.Fatal(err)
		}
		w := &onWrite{ResponseRecorder: httptest.NewRecorder()}
		w.do = func() {
			if open := isOpen(t, filepath.Join(root, tt.key)); open != tt.open {
				t.Errorf("%s %q: the file is open while it is written: %t, want %t", tt.key, tt.ranges, open, tt.open)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Range", tt.ranges)
		out := newItemWriter(w, object, func() {})
		http.ServeContent(out, r, "", object.Info.ModTime, object)
		if err := out.finish(); err != nil || w.Body.String() != tt.want {
			t.Errorf("%s %q: %d bytes were sent, want %d, error %v", tt.key, tt.ranges, w.Body.Len(), len(tt.want), err)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
}

// isOpen reports whether this process has the file open.
func isOpen(t *testing.T, path string) bool {
	t.Helper()
	const folder = "/proc/self/fd"
	descriptors, err := os.ReadDir(folder)
	if err != nil {
		t.Skip(err)
	}
	for _, d := range descriptors {
		if target, err := os.Readlink(filepath.Join(folder, d.Name())); err == nil && target == path {
			return true
		}
	}
	return false
}
