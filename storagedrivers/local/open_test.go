package local

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// openReader opens a new object of ten bytes in a folder below root. It is closed at the end of the
// test.
func openReader(t *testing.T, root string) *reader {
	t.Helper()
	test.Must(t, os.MkdirAll(filepath.Join(root, "a"), 0o755))
	test.Must(t, os.WriteFile(filepath.Join(root, "a", "b"), []byte("0123456789"), 0o600))
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { test.Must(t, d.Close()) })
	body, _, err := d.Open(t.Context(), "a/b", storagedrivers.Range{})
	test.Must(t, err)
	t.Cleanup(func() { test.Must(t, body.Close()) })
	return body.(*reader)
}

// TestReaderKeepsItsOffset: the offset of the file itself is only set for File.
func TestReaderKeepsItsOffset(t *testing.T) {
	t.Parallel()
	r := openReader(t, t.TempDir())
	for _, tt := range []struct {
		offset int64
		whence int
		at     int64
		want   string
	}{
		{3, io.SeekStart, 3, "34"},
		{1, io.SeekCurrent, 6, "67"},
		{-2, io.SeekEnd, 8, "89"},
		{5, io.SeekEnd, 15, ""},
		{0, io.SeekStart, 0, "01"},
	} {
		at, err := r.Seek(tt.offset, tt.whence)
		if err != nil || at != tt.at {
			t.Errorf("seeking %d from %d: at %d, want %d, error %v", tt.offset, tt.whence, at, tt.at, err)
		}
		if b, err := io.ReadAll(io.LimitReader(r, 2)); err != nil || string(b) != tt.want {
			t.Errorf("at %d: read %q, want %q, error %v", at, b, tt.want, err)
		}
	}
	for _, whence := range []int{io.SeekStart, -1, 3} {
		if _, err := r.Seek(-1, whence); err == nil {
			t.Errorf("seeking to -1 from %d succeeded", whence)
		}
	}
	file, err := r.File()
	test.Must(t, err)
	if b, err := io.ReadAll(file); err != nil || string(b) != "23456789" {
		t.Errorf("the file has %q from the offset on, error %v", b, err)
	}
}

// TestTruncatedWhileRead: a file that becomes shorter is an error, not a shorter object.
func TestTruncatedWhileRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	test.Must(t, put(t, s, "a", "0123456789", storagedrivers.CreateOnly))
	o, err := s.OpenSeeker(t.Context(), "a")
	test.Must(t, err)
	defer o.Close()
	_, err = io.ReadFull(o, make([]byte, 4))
	test.Must(t, err)
	test.Must(t, os.Truncate(filepath.Join(root, "a"), 6))
	b, err := io.ReadAll(o)
	if string(b) != "45" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, error %v, want the rest and an unexpected end", b, err)
	}
}
