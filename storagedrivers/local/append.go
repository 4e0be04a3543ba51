package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// appended is a writer of a growing object. It locks the file, flock(2), for the moment of a write
// or a sync, and while the object is adopted. So a writer whose client is silent blocks no other
// writer, and one that was overtaken finds another size than its own. The kernel releases the lock
// with the file, also if the process is killed.
type appended struct {
	folder *folder  // released by Close
	dir    *os.Root // the folder of the key, so that looking at the name is one step
	key    string
	file   *os.File

	size    int64 // of the object, unless another writer has appended
	begun   int64 // the disk was asked to write up to here
	durable int64
}

// Append opens the object under key for writing at its end. It syncs the name, and the bytes that
// are there. A writer that was killed may have left them, and this one cuts only its own if the
// disk loses some. The folder stays open until the writer, or the object that it adopts, is closed.
func (d *Driver) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	f, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	w := &appended{folder: f, key: key, size: size, begun: size}
	if err := w.begin(); err != nil {
		f.release()
		return nil, err
	}
	return w, nil
}

func (w *appended) begin() error {
	if err := w.open(); err != nil {
		return err
	}
	err := w.locked(func() error {
		if w.size > 0 {
			if err := w.sync(); err != nil {
				return err
			}
		}
		return w.folder.syncDir(path.Dir(w.key), false)
	})
	if err == nil {
		return nil
	}
	err = errors.Join(err, w.file.Close(), w.dir.Close())
	if w.size == 0 && errors.Is(err, errors.ErrUnsupported) { // no writer can have appended
		err = errors.Join(err, w.folder.root.Remove(w.key))
	}
	return err
}

// open opens the folder and the file. If no bytes are expected, it creates what is missing.
func (w *appended) open() error {
	flags := os.O_RDWR | os.O_APPEND | openNonblock
	if w.size == 0 {
		dir, err := w.folder.openDir(w.key)
		if err != nil {
			return err
		}
		defer dir.Close()
		flags |= os.O_CREATE
	}
	dir, err := w.folder.root.OpenRoot(path.Dir(w.key))
	if err != nil {
		return w.folder.lookupError(err)
	}
	file, err := dir.OpenFile(path.Base(w.key), flags, filePerm)
	if err == nil {
		w.dir, w.file = dir, file
		return nil
	}
	if errors.Is(err, syscall.EISDIR) {
		err = listing.ErrFolder
	}
	return errors.Join(w.folder.lookupError(err), dir.Close())
}

const (
	// lockTries is how often a locked file is tried, for about a second.
	lockTries = 50
	// lockInterval is the time between.
	lockInterval = 20 * time.Millisecond
)

// lock locks the file. It fails unless the key still has this file, no other writer has appended to
// it, and no item has it.
func (w *appended) lock() error {
	err := lockFile(w.file)
	for try := 0; errors.Is(err, errInUse); try++ {
		if try == lockTries {
			return storagedrivers.ErrInUse
		}
		time.Sleep(lockInterval)
		err = lockFile(w.file)
	}
	if err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return errors.Join(err, unlockFile(w.file))
	}
	return nil
}

func (w *appended) check() error {
	stat, err := w.file.Stat()
	if err != nil {
		return mapError(err)
	}
	there, err := w.dir.Stat(path.Base(w.key))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(stat, there):
		return fmt.Errorf("the object was deleted: %w", fs.ErrNotExist)
	case err != nil:
		return mapError(err)
	case !stat.Mode().IsRegular():
		return notAnObject(w.key)
	case stat.Size() != w.size:
		return fmt.Errorf("the object has another size than expected: %w", storagedrivers.ErrChanged)
	case links(stat) > 1:
		return fmt.Errorf("the object is committed: %w", fs.ErrExist)
	}
	return nil
}

// locked calls f while the file is locked.
func (w *appended) locked(f func() error) error {
	if err := w.lock(); err != nil {
		return err
	}
	return errors.Join(f(), unlockFile(w.file))
}

func (w *appended) Write(p []byte) (n int, err error) {
	err = w.locked(func() (err error) {
		n, err = w.file.Write(p)
		return mapError(err)
	})
	w.size += int64(n)
	if w.folder.sync && w.size-w.begun >= writeBehind {
		beginWriting(w.file, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	return n, err
}

// Flush syncs the file, unless the open folder is not the one at the path any more.
func (w *appended) Flush(ctx context.Context) error {
	if err := errors.Join(ctx.Err(), w.folder.inPlace()); err != nil {
		return err
	}
	return w.locked(w.sync)
}

// sync syncs the file. After a failure the system may report success for the same bytes. Therefore
// they are cut, unless they were synced before.
func (w *appended) sync() error {
	if w.folder.sync {
		if err := w.folder.syncFile(w.file); err != nil {
			return errors.Join(fmt.Errorf("syncing the file: %w", mapError(err)), w.file.Truncate(w.durable))
		}
	}
	w.durable = w.size
	return nil
}

// Adopt returns the locked file as staged data.
func (w *appended) Adopt(context.Context) (storagedrivers.Staged, error) {
	if err := w.lock(); err != nil {
		return nil, err
	}
	st := &staged{folder: w.folder, file: w.file, size: w.size, failures: w.folder.shared.failures(), adopted: true}
	_, err := w.file.Seek(0, io.SeekStart)
	if err == nil && w.folder.named {
		err = st.linkTemp(w.key)
	}
	if err != nil {
		return nil, errors.Join(mapError(err), unlockFile(w.file))
	}
	_ = w.dir.Close() // nothing was written to the handle
	return st, nil
}

// linkTemp links an adopted file into the scratch folder, where all staged files have a name if the
// system has no unnamed files.
func (st *staged) linkTemp(key string) error {
	temp, err := st.folder.scratchName()
	if err != nil {
		return err
	}
	if err := st.folder.root.Link(key, temp); err != nil {
		return fmt.Errorf("linking: %w", err)
	}
	if stat, err := st.file.Stat(); err != nil || links(stat) == 1 {
		return errors.Join(fmt.Errorf("the object was deleted: %w", fs.ErrNotExist), err, st.folder.root.Remove(temp))
	}
	st.temp = temp
	return nil
}

// Close closes the file.
func (w *appended) Close() error {
	defer w.folder.release()
	return errors.Join(w.file.Close(), w.dir.Close())
}

// Interface guards
var _ storagedrivers.Appended = (*appended)(nil)
