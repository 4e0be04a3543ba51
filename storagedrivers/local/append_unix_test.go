//go:build unix

package local

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// newWriter returns the writer of a new object "f/object".
func newWriter(t *testing.T) *appended {
	t.Helper()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { must(t, d.Close()) })
	w, err := d.append(t.Context(), "f/object", 0)
	must(t, err)
	return w
}

// TestAppendBlocked: a writer that waits for the disk is not taken over, and goes on.
func TestAppendBlocked(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	w.busy <- struct{}{}
	_, err := w.driver.Append(t.Context(), "f/object", 0)
	if !errors.Is(err, storagedrivers.ErrInUse) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("taking over a blocked writer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error)
	go func() {
		_, err := w.driver.Adopt(ctx, "f/object", 0)
		cancelled <- err
	}()
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	w.release()
	_, err = w.Write([]byte("more"))
	must(t, err)
	next, err := w.driver.Append(t.Context(), "f/object", 4)
	must(t, err)
	must(t, next.Close())
	must(t, w.Close())
}

// TestAppendLost: bytes that the disk has not confirmed are cut after a failed sync, so that no
// later sync can confirm them.
func TestAppendLost(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	_, err := w.Write([]byte("durable"))
	must(t, err)
	_, err = w.Flush(t.Context())
	must(t, err)
	_, err = w.Write([]byte("lost"))
	must(t, err)
	broken := errors.New("broken")
	if err := w.lose(broken); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := w.Write([]byte("late")); !errors.Is(err, broken) {
		t.Errorf("writing to a broken object: %v", err)
	}
	if _, err := w.Flush(t.Context()); !errors.Is(err, broken) {
		t.Errorf("flushing a broken object: %v", err)
	}
	must(t, w.Close())
	got, err := os.ReadFile(filepath.Join(w.driver.path, "f/object"))
	if err != nil || string(got) != "durable" {
		t.Errorf("the object has %q, %v", got, err)
	}
}

// TestAppendSync: a failed sync of the whole file system is no failure of a file that can be
// synced, and a failed sync of the file is one.
func TestAppendSync(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	rounds := 0
	w.driver.shared.share = func() error {
		rounds++
		return errors.New("another file")
	}
	w.driver.shared.alone = 1 // another upload
	_, err := w.Write([]byte("some"))
	must(t, err)
	size, err := w.Flush(t.Context())
	if err != nil || size != 4 || rounds != 1 {
		t.Errorf("flushed %d bytes, %v, after %d rounds", size, err, rounds)
	}
	if !w.driver.flush.isDurable("f") {
		t.Error("the folder is not synced")
	}
	_, in, err := os.Pipe()
	must(t, err)
	must(t, w.file.Close())
	w.file = in // it cannot be synced
	if _, err := w.Flush(t.Context()); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("flushing what cannot be synced: %v", err)
	}
	must(t, w.Close())
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
	if _, err := w.Flush(t.Context()); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("flushing: %v, want unavailable", err)
	}
	for _, err := range []error{
		errOf(f.Append(t.Context(), "object", 4)), errOf(f.Adopt(t.Context(), "object", 4)), errOf(f.Flush(t.Context(), "object")),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("in the new folder: %v, want none", err)
		}
	}
	must(t, w.Close())
	wantFiles(t, f.root)
}

func errOf[T any](_ T, err error) error { return err }

// TestAppendWithoutLocks: nothing is left of an object that could not be locked.
func TestAppendWithoutLocks(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	must(t, w.file.Close()) // a closed file cannot be locked
	if err := lockFile(w.file); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("locking: %v, want unsupported", err)
	}
	_ = w.Close() // the file is closed already
	if err := linkError(&os.LinkError{Err: syscall.EPERM}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("linking: %v, want unsupported", err)
	}
}

// TestAppendMarked: a mark that a killed process has left is removed by the next writer.
func TestAppendMarked(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	must(t, w.Close())
	name := filepath.Join(w.driver.path, "f/object")
	must(t, os.Chmod(name, 0o744))
	again, err := w.driver.Append(t.Context(), "f/object", 0)
	must(t, err)
	_, err = again.Write(bytes.Repeat([]byte("x"), 100))
	must(t, err)
	must(t, again.Close())
	stat, err := os.Stat(name)
	must(t, err)
	if asked(stat) || stat.Size() != 100 {
		t.Errorf("the object has the mode %v and %d bytes", stat.Mode(), stat.Size())
	}
}
