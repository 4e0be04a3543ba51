package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// folder is the root of a driver while it is open. It stays open until its last reference is
// released, even if it is moved, removed or mounted over meanwhile.
type folder struct {
	*Driver
	references *locks.References

	root      *os.Root
	dir       *os.File    // the root once more, for system calls that os.Root has not
	opened    fs.FileInfo // of the root
	recovered bool        // commits of earlier runs were looked for; Driver.mu guards it

	mu      sync.Mutex
	scratch *scratch // nil until first needed

	shared sharer
	flush  flusher
	names  listing.Kept[string, state]
}

// openFolder opens a folder to read its entries. Reading the one of os.Root calls lstat for each of
// them.
func (f *folder) openFolder(name string) (*os.File, error) {
	if dir := openBeneath(f.dir, name); dir != nil {
		return dir, nil
	}
	return f.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
}

var (
	errGone = storagedrivers.WithCause(fmt.Errorf("the root is gone: %w", storagedrivers.ErrUnavailable),
		"The folder was there and is gone. Mount its disk, or create it again. Caddy then uses it without a restart.")
	errReplaced  = fmt.Errorf("the root was replaced during the upload: %w", storagedrivers.ErrUnavailable)
	errUnmounted = storagedrivers.WithCause(
		fmt.Errorf("the root was replaced by an empty folder of another file system: %w", storagedrivers.ErrUnavailable),
		"At the path is an empty folder of another file system. Mount the disk of the storage. "+
			"If this folder is meant, put any file into it or restart Caddy.")
)

// open returns the folder at the path. The caller must release it. At the first use it creates the
// folder and sweeps leftovers. If the folder was replaced, the new one is used from now on.
func (d *Driver) open(ctx context.Context) (*folder, error) { return d.acquire(ctx, true) }

// look calls do with the folder that was used last, without a check of the path. If do finds
// nothing and the folder was replaced, it calls do again with the new one.
func (d *Driver) look(ctx context.Context, do func(*folder) error) error {
	before, err := d.acquire(ctx, false)
	if err != nil {
		return err
	}
	defer before.release()
	err = do(before)
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrUnavailable) {
		return err
	}
	now, openErr := d.open(ctx)
	if openErr != nil {
		return openErr
	}
	defer now.release()
	if now == before {
		return err
	}
	return do(now)
}

func (d *Driver) acquire(ctx context.Context, follow bool) (*folder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.openRoot(follow)
	if err != nil {
		return nil, err
	}
	if !f.recovered {
		if err := f.sweepAll(); err != nil {
			return nil, fmt.Errorf("sweeping leftovers: %w", mapError(err))
		}
		f.recovered = true
	}
	f.references.Acquire()
	return f, nil
}

// release releases a folder. Errors of closing a replaced folder concern no caller.
func (f *folder) release() {
	if err := f.references.Release(); err != nil {
		f.log.Warn("closing the folder that was replaced", "folder", f.path, "error", err)
	}
}

// openRoot returns the current folder. It opens the one at the path at the first use, and with
// follow also if that was replaced. d.mu must be held.
func (d *Driver) openRoot(follow bool) (*folder, error) {
	if d.current != nil {
		if !follow {
			return d.current, nil
		}
		replaced, err := d.current.replaced()
		if err != nil || !replaced {
			return d.current, err
		}
		d.log.Warn("the folder of a storage was replaced; the new one is used from now on", "folder", d.path)
		if err := d.current.references.Close(); err != nil {
			d.log.Warn("closing the folder that was replaced", "folder", d.path, "error", err)
		}
		d.current = nil
	}
	if err := d.makeRoot(); err != nil {
		return nil, fmt.Errorf("making the root: %w", mapError(err))
	}
	f, err := d.openFolder()
	if err != nil {
		err = fmt.Errorf("opening the root: %w", mapError(err))
		if stat, statErr := os.Stat(d.path); statErr == nil && !stat.IsDir() {
			err = storagedrivers.WithCause(err, storagedrivers.NotAFolder)
		}
		return nil, err
	}
	d.current = f
	return f, nil
}

func (d *Driver) openFolder() (*folder, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f := &folder{
		Driver: d, root: root, dir: dir, shared: sharer{now: d.now},
		names: listing.Kept[string, state]{
			Least: d.keepFrom, Most: d.keepNames, Name: func(_, name string) string { return name }, Same: state.isSame,
		},
	}
	if f.opened, err = dir.Stat(); err != nil {
		return nil, errors.Join(err, dir.Close(), root.Close())
	}
	f.references = locks.NewReferences(f.close)
	if canShare(dir) {
		f.shared.share = func() error { return syncAll(dir) }
	}
	return f, nil
}

func (f *folder) close() error {
	f.names.Close()
	return errors.Join(f.closeScratch(), f.dir.Close(), f.root.Close())
}

// unmade reports whether the root is yet to be created. d.mu must be held.
func (d *Driver) unmade() bool {
	if d.current != nil {
		return false
	}
	_, err := os.Lstat(d.path) // a link that leads nowhere is there
	return errors.Is(err, fs.ErrNotExist)
}

// makeRoot creates the folder. If it is new, it syncs the folder's name and those above it. Not all
// of them need to be readable.
func (d *Driver) makeRoot() error {
	if _, err := os.Stat(d.path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(d.path, dirPerm); err != nil {
		return err
	}
	for above := filepath.Dir(d.path); d.sync && above != filepath.Dir(above); above = filepath.Dir(above) {
		dir, err := os.Open(above)
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(d.syncBy(syncFolder, dir), dir.Close()); err != nil {
			return err
		}
	}
	return nil
}

// replaced reports whether the folder at the path is another one than the open folder. A missing
// folder is not created again, because it may be a disk that is not mounted.
func (f *folder) replaced() (bool, error) {
	now, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, errGone
	case err != nil:
		return false, fmt.Errorf("looking at the root: %w", mapError(err))
	case os.SameFile(f.opened, now):
		return false, nil
	case unmounted(f.path, f.opened, now):
		return false, errUnmounted
	}
	return true, nil
}

// inPlace returns an error if the open folder is not the one at the path.
func (f *folder) inPlace() error {
	replaced, err := f.replaced()
	if replaced {
		return errReplaced
	}
	return err
}

// unmounted reports whether the folder at path looks like the mount point of an unmounted disk: it
// is empty, and on the file system of its parent, but the old folder was not.
func unmounted(path string, old, now fs.FileInfo) bool {
	if device(old) == device(now) {
		return false
	}
	parent, err := os.Stat(filepath.Dir(path))
	return err == nil && device(parent) == device(now) && empty(path)
}

// empty reports whether a folder contains nothing but scratch folders.
func empty(path string) bool {
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(16)
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, scratchPrefix) {
				return false
			}
		}
	}
}

// openDir opens the folder of a key, and creates it if it is missing.
func (f *folder) openDir(key string) (*os.File, error) {
	name := path.Dir(key)
	dir, err := f.openExisting(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.makeDir(name); errors.Is(err, fs.ErrNotExist) {
			return nil, f.lookupError(err)
		} else if err != nil {
			return nil, fmt.Errorf("making folder %q: %w", name, mapFolderError(err))
		}
		dir, err = f.openExisting(name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", name, err)
	}
	return dir, nil
}

// makeDir makes a folder and those above it that are missing. Only these have names that are not on
// the disk yet.
func (f *folder) makeDir(name string) error {
	f.flush.forget(name)
	err := f.root.Mkdir(name, dirPerm)
	if errors.Is(err, fs.ErrNotExist) && name != "." {
		if err = f.makeDir(path.Dir(name)); err == nil {
			err = f.root.Mkdir(name, dirPerm)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// openExisting opens a folder. A file in its place is an invalid key.
func (f *folder) openExisting(name string) (*os.File, error) {
	if dir := openBeneath(f.dir, name); dir != nil {
		return dir, nil
	}
	dir, err := f.root.Open(name)
	if err != nil {
		return nil, mapFolderError(err)
	}
	stat, err := dir.Stat()
	if err == nil && !stat.IsDir() {
		err = fmt.Errorf("%q is no folder: %w", name, storagedrivers.ErrInvalidKey)
	}
	if err != nil {
		return nil, errors.Join(mapError(err), dir.Close())
	}
	return dir, nil
}

// openNearest opens a folder, or the next one above it that is there, and returns its name. Only
// with mayBeGone nothing may have the name; a file may.
func (f *folder) openNearest(name string, mayBeGone bool) (*os.File, string, error) {
	for {
		dir, err := f.openExisting(name)
		gone := errors.Is(err, storagedrivers.ErrInvalidKey) || mayBeGone && errors.Is(err, fs.ErrNotExist)
		if !gone || name == "." {
			return dir, name, err
		}
		name = path.Dir(name)
	}
}

// clear removes a folder that is in the way of a key, if all in it are folders.
func (f *folder) clear(key string) error {
	read := func(folder string) (names []string, err error) {
		dir, err := f.openFolder(folder)
		if err != nil {
			return nil, ignoreMissing(err)
		}
		defer dir.Close()
		if stat, err := dir.Stat(); err != nil || device(stat) != device(f.opened) {
			return nil, listing.ErrFolder // a file system of its own is no folder of objects
		}
		for {
			entries, err := dir.ReadDir(64)
			for _, entry := range entries {
				if !entry.IsDir() {
					return nil, listing.ErrFolder
				}
				names = append(names, entry.Name())
			}
			if errors.Is(err, io.EOF) {
				return names, nil
			} else if err != nil {
				return nil, ignoreMissing(err)
			}
		}
	}
	err := listing.Clear(key, read, func(folder string) error {
		parent, err := f.root.Open(path.Dir(folder))
		if err != nil {
			return ignoreMissing(err)
		}
		defer parent.Close()
		return ignoreMissing(removeFolder(parent, path.Base(folder)))
	})
	for _, stays := range []error{fs.ErrExist, fs.ErrPermission, errors.ErrUnsupported, syscall.EBUSY} {
		if errors.Is(err, stays) { // the first is that of a folder that is not empty any more
			return listing.ErrFolder
		}
	}
	return err
}

// isGone reports whether err of renaming a file over an object means that the object was deleted:
// its folder is gone too, or the object is a folder by now.
func (f *folder) isGone(file string, err error) bool {
	if !errors.Is(mapReadError(err), fs.ErrNotExist) {
		return errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist) // the second is that of os.Root
	}
	_, missing := f.root.Lstat(file)
	return missing == nil
}

// ignoreMissing is mapReadError without fs.ErrNotExist: another commit was faster.
func ignoreMissing(err error) error {
	if err = mapReadError(err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lookupError is mapReadError for an object that is to be changed. If the root is missing, the
// backend is unavailable.
func (f *folder) lookupError(err error) error {
	err = mapReadError(err)
	if errors.Is(err, fs.ErrNotExist) {
		if _, rootErr := os.Stat(f.path); errors.Is(rootErr, fs.ErrNotExist) {
			return errGone
		}
	}
	return err
}

// scratchPrefix is the prefix of the names of scratch folders. No key begins with a dot, so these
// never contain an object.
const scratchPrefix = ".media-tmp-"

// scratch is the folder for temporary names. Its lock, held until the process ends, distinguishes
// it from a leftover.
type scratch struct {
	name string
	lock *os.File
	next atomic.Int64
}

// scratchName returns a new name in the scratch folder, which is created when it is first needed.
func (f *folder) scratchName() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scratch == nil {
		s, err := newScratch(f.root)
		if err != nil {
			return "", fmt.Errorf("making the scratch folder: %w", mapError(err))
		}
		f.scratch = s
	}
	return f.scratch.name + "/" + strconv.FormatInt(f.scratch.next.Add(1), 36), nil
}

var errInUse = errors.New("the folder is locked")

func newScratch(root *os.Root) (*scratch, error) {
	for {
		name := scratchPrefix + rand.Text()
		if err := root.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
		lock, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept by a process that starts
		}
		if err != nil {
			return nil, err
		}
		// Without support for locks, other processes never remove the folder.
		if !errors.Is(tryLock(lock), errInUse) && stillThere(root, name) {
			return &scratch{name: name, lock: lock}, nil
		}
		if err := lock.Close(); err != nil {
			return nil, err
		}
	}
}

func stillThere(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// closeScratch removes the scratch folder, unless a commit that was neither undone nor completed
// cannot be now either.
func (f *folder) closeScratch() error {
	if f.scratch == nil {
		return nil
	}
	r := &recovery{folder: f, scratch: f.scratch.name}
	err := r.all()
	if err == nil {
		err = f.root.RemoveAll(f.scratch.name)
	}
	return errors.Join(err, f.scratch.lock.Close())
}
