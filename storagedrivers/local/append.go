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
)

// Append opens the object under key for writing at its end.
func (d *Driver) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	w, err := d.append(ctx, key, size)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (d *Driver) append(ctx context.Context, key string, size int64) (*appended, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	file, stat, err := d.claim(ctx, root, key, size, size == 0)
	if err != nil {
		return nil, err
	}
	if links(stat) > 1 {
		return nil, errors.Join(fmt.Errorf("the object is committed: %w", fs.ErrExist), file.Close())
	}
	if _, err := file.Seek(size, io.SeekStart); err != nil {
		return nil, errors.Join(mapError(err), file.Close())
	}
	w := &appended{
		driver: d, root: root, key: key, file: file, id: idOf(stat), size: size, durable: size, begun: size,
		started: d.now(), busy: make(chan struct{}, 1), done: make(chan struct{}),
	}
	writers.add(w)
	if !asked(stat) { // otherwise the file system does not keep permissions
		go w.watch()
	}
	return w, nil
}

// Flush syncs a file that may have a writer. The size is that from before the sync. After a power
// failure it may include bytes that no writer has flushed, and some of them may be zeros: ext4 may
// write the size first.
func (d *Driver) Flush(ctx context.Context, key string) (storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	root, err := d.open()
	if err != nil {
		return storagedrivers.Info{}, err
	}
	file, stat, err := d.openGrowing(root, key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer file.Close()
	if d.sync {
		if err := d.syncFile(file); err != nil {
			return storagedrivers.Info{}, fmt.Errorf("syncing the file: %w", mapError(err))
		}
	}
	if err := d.syncDir(root, path.Dir(key)); err != nil {
		return storagedrivers.Info{}, err
	}
	return newInfo(key, stat), nil
}

// Adopt returns the locked file as staged data.
func (d *Driver) Adopt(ctx context.Context, key string, size int64) (storagedrivers.Staged, error) {
	st, err := d.adopt(ctx, key, size)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// adopt syncs the bytes before any sync of a Commit, whose failure concerns only the name and the
// time: bytes that the disk has lost are cut, see [appended.Flush].
func (d *Driver) adopt(ctx context.Context, key string, size int64) (*staged, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	file, stat, err := d.claim(ctx, root, key, size, false)
	if err != nil {
		return nil, err
	}
	st := &staged{driver: d, root: root, file: file, size: size, failures: d.shared.failures(), adopted: true}
	if d.sync {
		if err := d.syncFile(file); err != nil {
			err = fmt.Errorf("syncing the file: %w", mapError(err))
			if links(stat) == 1 { // not committed already
				err = errors.Join(err, file.Truncate(0))
			}
			return nil, errors.Join(err, st.Close())
		}
	}
	if d.named {
		if err := st.linkTemp(key); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	return st, nil
}

// linkTemp links an adopted file into the scratch folder, where all staged files have a name if the
// system has no unnamed files.
func (st *staged) linkTemp(key string) error {
	temp, err := st.driver.scratchName(st.root)
	if err != nil {
		return err
	}
	if err := st.root.Link(key, temp); err != nil {
		return fmt.Errorf("linking: %w", linkError(err))
	}
	st.temp = temp
	mine, err := st.file.Stat()
	if err != nil {
		return mapError(err)
	}
	if there, err := st.root.Lstat(temp); err != nil || !os.SameFile(mine, there) {
		return fmt.Errorf("the object was deleted: %w", fs.ErrNotExist)
	}
	return nil
}

const (
	// endTimeout is how long an earlier writer is waited for.
	endTimeout = time.Second
	// lockInterval is how often its lock is tried meanwhile.
	lockInterval = 20 * time.Millisecond
	// claims is how often an object that is being deleted and created is opened.
	claims = 16
)

// claim opens the object under key and locks it. If it is missing, create selects whether claim
// creates it.
func (d *Driver) claim(ctx context.Context, root *os.Root, key string, size int64, create bool) (*os.File, fs.FileInfo, error) {
	limited, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	for range claims {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		file, stat, err := d.openGrowing(root, key)
		if errors.Is(err, fs.ErrNotExist) && create {
			if file, err = d.createLocked(ctx, root, key); errors.Is(err, fs.ErrExist) {
				continue
			}
		} else if err == nil {
			err = d.takeOver(limited, file, stat, size)
		}
		if err != nil {
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				err = storagedrivers.ErrInUse
			}
			return nil, nil, err
		}
		stat, err = d.claimed(root, key, file, size)
		if err == nil {
			return file, stat, nil
		}
		if err = errors.Join(err, file.Close()); !errors.Is(err, errReopen) {
			return nil, nil, err
		}
	}
	return nil, nil, storagedrivers.ErrInUse
}

// openGrowing opens an object for reading, syncing, locking and appending.
func (d *Driver) openGrowing(root *os.Root, key string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(key, os.O_RDWR|openNonblock, 0)
	if errors.Is(err, syscall.EISDIR) {
		return nil, nil, errFolder
	}
	if err != nil {
		return nil, nil, d.lookupError(err)
	}
	stat, err := file.Stat()
	if err != nil {
		return nil, nil, errors.Join(mapError(err), file.Close())
	}
	if !stat.Mode().IsRegular() {
		return nil, nil, errors.Join(notAnObject(key), file.Close())
	}
	return file, stat, nil
}

// createLocked creates an empty object and locks it before it has its name.
func (d *Driver) createLocked(ctx context.Context, root *os.Root, key string) (*os.File, error) {
	st, err := d.stage(ctx)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) { return nil, errors.Join(err, st.Close()) }
	if err := lockFile(st.file); err != nil {
		return fail(err)
	}
	dir, err := d.openFolder(root, path.Dir(key))
	if err != nil {
		return fail(err)
	}
	defer dir.Close()
	if err := st.create(dir, key); err != nil {
		return fail(linkError(err))
	}
	if st.temp != "" {
		if err := root.Remove(st.temp); err != nil {
			return nil, errors.Join(mapError(err), st.file.Close())
		}
	}
	return st.file, nil
}

// linkError returns the error of linking; on a file system without links it is EPERM, link(2).
func linkError(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return mapError(err)
}

// takeOver locks a file after it has ended its writer. It closes the file on failure.
func (d *Driver) takeOver(ctx context.Context, file *os.File, stat fs.FileInfo, size int64) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	defer withdraw(file)
	for {
		if stat.Size() != size {
			return errSize
		}
		if err := lockFile(file); !errors.Is(err, errInUse) {
			return err
		}
		if w := writers.of(idOf(stat)); w != nil {
			err = w.supersede(ctx, size)
		} else {
			err = askToEnd(file)
			select {
			case <-ctx.Done():
			case <-time.After(lockInterval):
			}
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if stat, err = file.Stat(); err != nil {
			return mapError(err)
		}
	}
}

var (
	errSize   = fmt.Errorf("the object has another size than expected: %w", storagedrivers.ErrChanged)
	errReopen = errors.New("the object was replaced while it was opened")
)

// claimed returns the state of a locked file. The error is errReopen if the key has another file.
func (d *Driver) claimed(root *os.Root, key string, file *os.File, size int64) (fs.FileInfo, error) {
	stat, err := file.Stat()
	if err != nil {
		return nil, mapError(err)
	}
	there, err := root.Stat(key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(stat, there) {
		return nil, errReopen
	}
	if err != nil {
		return nil, d.lookupError(err)
	}
	if stat.Size() != size {
		return nil, errSize
	}
	return stat, nil
}
