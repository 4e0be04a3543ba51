//go:build unix

package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// newWriter returns the writer of a new object "f/object".
func newWriter(t *testing.T) *appended {
	t.Helper()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { test.Must(t, d.Close()) })
	w, err := d.Append(t.Context(), "f/object", 0)
	test.Must(t, err)
	return w.(*appended)
}

// TestAppendBlocked: a writer that waits for the disk keeps others out, and goes on.
func TestAppendBlocked(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	test.Must(t, w.locked(func() error {
		_, err := w.folder.Append(t.Context(), "f/object", 0)
		test.Is(t, err, storagedrivers.ErrInUse, "appending beside a blocked writer")
		return nil
	}))
	_, err := w.Write([]byte("more"))
	test.Must(t, err)
	next, err := w.folder.Append(t.Context(), "f/object", 4)
	test.Must(t, err)
	test.Must(t, errors.Join(next.Close(), w.Close()))
}

// TestAppendLost: bytes that the disk has not confirmed are cut after a failed sync, so that no
// later sync can confirm them.
func TestAppendLost(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	_, err := w.Write([]byte("durable"))
	test.Must(t, err)
	test.Must(t, w.Flush(t.Context()))
	_, err = w.Write([]byte("lost"))
	test.Must(t, err)
	broken := errors.New("broken")
	w.folder.synced = func(*os.File) error { return broken }
	test.Is(t, w.Flush(t.Context()), broken, "flushing to a broken disk")
	w.folder.synced = nil
	_, err = w.Write([]byte("late"))
	test.Is(t, err, storagedrivers.ErrChanged, "writing behind lost bytes")
	test.Is(t, w.Flush(t.Context()), storagedrivers.ErrChanged, "flushing lost bytes")
	test.Must(t, w.Close())
	got, err := os.ReadFile(filepath.Join(w.folder.path, "f/object"))
	if err != nil || string(got) != "durable" {
		t.Errorf("the object has %q, %v", got, err)
	}
}

// TestAppendToLost: a writer does not append to bytes that the disk has lost.
func TestAppendToLost(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	_, err := w.Write([]byte("lost"))
	test.Must(t, errors.Join(err, w.Close()))
	broken := errors.New("broken")
	w.folder.synced = func(*os.File) error { return broken }
	_, err = w.folder.Append(t.Context(), "f/object", 4)
	test.Is(t, err, broken, "appending on a broken disk")
	got, err := os.ReadFile(filepath.Join(w.folder.path, "f/object"))
	if err != nil || len(got) > 0 {
		t.Errorf("the object has %q, %v", got, err)
	}
}

// TestAppendInReplacedRoot: nothing is reported as durable in a folder that is not used any more.
func TestAppendInReplacedRoot(t *testing.T) {
	t.Parallel()
	f := follow(t)
	w, err := f.Append(t.Context(), "object", 0)
	test.Must(t, err)
	_, err = w.Write([]byte("some"))
	test.Must(t, err)
	test.Must(t, os.Rename(f.root, f.root+".old"))
	test.Must(t, os.Mkdir(f.root, 0o755))
	test.Is(t, w.Flush(t.Context()), storagedrivers.ErrUnavailable, "flushing")
	_, err = f.Append(t.Context(), "object", 4)
	test.Is(t, err, fs.ErrNotExist, "in the new folder")
	test.Must(t, w.Close())
	wantFiles(t, f.root)
}

// TestAppendWithoutLocks: a file that cannot be locked cannot be appended to.
func TestAppendWithoutLocks(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	test.Must(t, w.file.Close()) // a closed file cannot be locked
	_, err := w.Write([]byte("some"))
	test.Is(t, err, errors.ErrUnsupported, "writing")
	_ = w.Close() // the file is closed already
}
