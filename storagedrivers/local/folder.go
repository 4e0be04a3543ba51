package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
)

// open returns the root. At the first use it creates the folder and sweeps leftovers.
func (d *Driver) open() (*os.Root, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	root, err := d.openRoot()
	if err != nil || d.recovered {
		return root, err
	}
	if err := d.sweepAll(root); err != nil {
		return nil, fmt.Errorf("sweeping leftovers: %w", mapError(err))
	}
	d.recovered = true
	return root, nil
}

// openRoot returns the root. At the first use it creates the folder. d.mu must be held.
func (d *Driver) openRoot() (*os.Root, error) {
	if d.root != nil {
		return d.root, nil
	}
	if err := d.makeRoot(); err != nil {
		return nil, fmt.Errorf("making the root: %w", mapError(err))
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		err = fmt.Errorf("opening the root: %w", mapError(err))
		if stat, statErr := os.Stat(d.path); statErr == nil && !stat.IsDir() {
			err = storagedrivers.WithCause(err, storagedrivers.NotAFolder)
		}
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the root: %w", mapError(err)), root.Close())
	}
	opened, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the root: %w", mapError(err)), dir.Close(), root.Close())
	}
	d.root, d.dir, d.opened, d.named = root, dir, opened, d.named || !canLink()
	d.shared.now = d.now
	if canShare(dir) {
		d.shared.share = func() error { return syncAll(dir) }
	}
	return root, nil
}

// unmade reports whether the root is yet to be created. d.mu must be held.
func (d *Driver) unmade() bool {
	if d.root != nil {
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

// openFolder opens a folder of the root, and creates it if it is missing.
func (d *Driver) openFolder(root *os.Root, name string) (*os.File, error) {
	if dir := openBeneath(d.dir, name); dir != nil {
		return dir, nil
	}
	dir, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		d.flush.forget(name) // others may have removed it
		if err := root.MkdirAll(name, dirPerm); err != nil {
			return nil, fmt.Errorf("making folder %q: %w", name, mapFolderError(err))
		}
		dir, err = root.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %q: %w", name, mapFolderError(err))
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

// mapFolderError is mapError for a folder of a key. A file in its path makes the key invalid.
func mapFolderError(err error) error {
	if errors.Is(err, fs.ErrExist) || isNotDir(err) {
		return fmt.Errorf("%w: %w", storagedrivers.ErrInvalidKey, err)
	}
	return mapError(err)
}

// syncFile syncs the bytes of a file and its times.
func (d *Driver) syncFile(file *os.File) error { return d.syncBy((*os.File).Sync, file) }

// syncBy syncs a file or folder by a system call.
func (d *Driver) syncBy(call func(*os.File) error, file *os.File) error {
	if d.synced != nil {
		return d.synced(file)
	}
	return call(file)
}

// syncDir syncs the names in a folder.
func (d *Driver) syncDir(root *os.Root, name string) error {
	if !d.sync {
		return nil
	}
	dir, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("opening folder %q: %w", name, mapError(err))
	}
	defer dir.Close()
	return d.syncOpenDir(root, dir, name)
}

func (d *Driver) syncOpenDir(root *os.Root, dir *os.File, name string) error {
	if !d.sync {
		return nil
	}
	err := d.flush.do(name, func() error { return d.syncNames(root, dir, name) })
	if err != nil {
		return fmt.Errorf("syncing folder %q: %w", name, mapError(err))
	}
	return nil
}

// syncNames syncs a folder and, at its first call for the folder, those above it, which may be as
// new.
func (d *Driver) syncNames(root *os.Root, dir *os.File, name string) error {
	if err := d.syncBy(syncFolder, dir); err != nil {
		return err
	}
	if d.flush.isDurable(name) {
		return nil
	}
	for above := name; above != "."; {
		above = path.Dir(above)
		parent, err := root.Open(above)
		if err != nil {
			return err
		}
		if err := errors.Join(d.syncBy(syncFolder, parent), parent.Close()); err != nil {
			return err
		}
	}
	d.flush.setDurable(name)
	return nil
}

// flusher lets concurrent callers for one folder share a sync. Callers that come during a sync wait
// for the next one, which covers them all.
type flusher struct {
	mu     sync.Mutex
	rounds map[string]*round
	known  map[string]bool // folders whose own names are on the disk
}

type round struct {
	begun bool
	done  chan struct{}
	err   error
}

func (f *flusher) do(name string, sync func() error) error {
	f.mu.Lock()
	before := f.rounds[name]
	if before != nil && !before.begun {
		f.mu.Unlock()
		<-before.done
		return before.err
	}
	mine := &round{done: make(chan struct{})}
	if f.rounds == nil {
		f.rounds = map[string]*round{}
	}
	f.rounds[name] = mine
	f.mu.Unlock()

	if before != nil {
		<-before.done
	}
	f.mu.Lock()
	mine.begun = true
	f.mu.Unlock()
	mine.err = sync()
	f.mu.Lock()
	if f.rounds[name] == mine {
		delete(f.rounds, name)
	}
	f.mu.Unlock()
	close(mine.done)
	return mine.err
}

// maxKnown bounds the memory for folders; a forgotten one is only synced again.
const maxKnown = 4096

func (f *flusher) isDurable(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[name]
}

func (f *flusher) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, name)
}

func (f *flusher) setDurable(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxKnown {
		f.known = map[string]bool{}
	}
	f.known[name] = true
}
