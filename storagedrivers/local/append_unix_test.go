//go:build unix

package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// newWriter returns the writer of a new object "f/object".
func newWriter(t *testing.T) *appended {
	t.Helper()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { must(t, d.Close()) })
	w, err := d.Append(t.Context(), "f/object", 0)
	must(t, err)
	return w.(*appended)
}

// TestAppendBlocked: a writer that waits for the disk keeps others out, and goes on.
func TestAppendBlocked(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	must(t, w.locked(func() error {
		_, err := w.folder.Append(t.Context(), "f/object", 0)
		if !errors.Is(err, storagedrivers.ErrInUse) {
			t.Errorf("appending beside a blocked writer: %v", err)
		}
		return nil
	}))
	_, err := w.Write([]byte("more"))
	must(t, err)
	next, err := w.folder.Append(t.Context(), "f/object", 4)
	must(t, err)
	must(t, errors.Join(next.Close(), w.Close()))
}

// TestAppendLost: bytes that the disk has not confirmed are cut after a failed sync, so that no
// later sync can confirm them.
func TestAppendLost(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	_, err := w.Write([]byte("durable"))
	must(t, err)
	must(t, w.Flush(t.Context()))
	_, err = w.Write([]byte("lost"))
	must(t, err)
	broken := errors.New("broken")
	w.folder.synced = func(*os.File) error { return broken }
	if err := w.Flush(t.Context()); !errors.Is(err, broken) {
		t.Errorf("flushing to a broken disk: %v", err)
	}
	w.folder.synced = nil
	if _, err := w.Write([]byte("late")); !errors.Is(err, storagedrivers.ErrChanged) {
		t.Errorf("writing behind lost bytes: %v", err)
	}
	if err := w.Flush(t.Context()); !errors.Is(err, storagedrivers.ErrChanged) {
		t.Errorf("flushing lost bytes: %v", err)
	}
	must(t, w.Close())
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
	must(t, errors.Join(err, w.Close()))
	broken := errors.New("broken")
	w.folder.synced = func(*os.File) error { return broken }
	if _, err := w.folder.Append(t.Context(), "f/object", 4); !errors.Is(err, broken) {
		t.Errorf("appending on a broken disk: %v", err)
	}
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
	must(t, err)
	_, err = w.Write([]byte("some"))
	must(t, err)
	must(t, os.Rename(f.root, f.root+".old"))
	must(t, os.Mkdir(f.root, 0o755))
	if err := w.Flush(t.Context()); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("flushing: %v, want unavailable", err)
	}
	if _, err := f.Append(t.Context(), "object", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in the new folder: %v, want none", err)
	}
	must(t, w.Close())
	wantFiles(t, f.root)
}

// TestAppendWithoutLocks: a file that cannot be locked cannot be appended to.
func TestAppendWithoutLocks(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	must(t, w.file.Close()) // a closed file cannot be locked
	if _, err := w.Write([]byte("some")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("writing: %v, want unsupported", err)
	}
	_ = w.Close() // the file is closed already
}
