package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// Commit syncs the bytes, links the file to its name, and then syncs the name. A group does both
// syncs for all of its objects at the same time. Commit fails if the open folder is not the one at
// the path.
func (st *staged) Commit(ctx context.Context, key string, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	if err := errors.Join(ctx.Err(), st.driver.inPlace()); err != nil {
		return storagedrivers.Info{}, err
	}
	if err := st.seal(); err != nil {
		return storagedrivers.Info{}, err
	}
	d, grouped := st.driver, st.group.recorded()
	if grouped {
		if err := st.group.announce(st, key); err != nil {
			return storagedrivers.Info{}, err
		}
	}
	dir, err := d.openFolder(st.root, path.Dir(key))
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer dir.Close()
	commit := st.create
	if opts.Mode == storagedrivers.Overwrite {
		commit = st.replace
	}
	if err := commit(dir, key); err != nil {
		return storagedrivers.Info{}, err
	}
	st.key = key
	d.mark("named")
	if !grouped {
		if err := st.syncName(dir, path.Dir(key)); err != nil {
			return storagedrivers.Info{}, errors.Join(err, st.Rollback(ctx))
		}
		if err := d.inPlace(); err != nil { // it may have been replaced meanwhile
			return storagedrivers.Info{}, errors.Join(err, st.Rollback(ctx))
		}
	}
	stat, err := st.file.Stat()
	if err != nil {
		return storagedrivers.Info{}, errors.Join(mapError(err), st.Rollback(ctx))
	}
	return newInfo(key, stat), nil
}

// seal ends the writing: the bytes are on the disk before they have a name.
func (st *staged) seal() error {
	if st.sealed {
		return nil
	}
	if err := st.stamp(); err != nil {
		return err
	}
	if st.driver.sync {
		sync := st.durable
		if st.large() {
			sync = func(own func() error) error { return own() }
		}
		if err := sync(st.syncFile); err != nil {
			return fmt.Errorf("syncing the file: %w", mapError(err))
		}
	}
	st.sealed = true
	return nil
}

// stamp sets the time of the commit.
func (st *staged) stamp() error {
	if st.stamped {
		return nil
	}
	if err := stamp(st.file, st.driver.now()); err != nil {
		return fmt.Errorf("setting the time: %w", mapError(err))
	}
	st.stamped = true
	return nil
}

func (st *staged) syncFile() error { return st.driver.syncFile(st.file) }

// large reports whether the file is synced on its own, so that no other upload waits for it.
func (st *staged) large() bool { return st.size > writeBehind }

// syncName syncs the new name, and the file again: the file counts its names, and a file system
// without a journal removes a file that counts none.
func (st *staged) syncName(dir *os.File, name string) error {
	if !st.driver.sync {
		return nil
	}
	return st.durable(func() error {
		if err := st.syncFile(); err != nil {
			return fmt.Errorf("syncing the file: %w", mapError(err))
		}
		return st.driver.syncOpenDir(st.root, dir, name)
	})
}

// durable returns when the current state of the object is on the disk, by own or by a shared sync.
func (st *staged) durable(own func() error) error {
	return st.driver.shared.do(own, st.failures)
}

// create links the file to a name that must be free.
func (st *staged) create(dir *os.File, key string) error {
	var err error
	if st.temp == "" {
		err = linkUnnamed(st.file, dir, path.Base(key))
	} else {
		err = st.root.Link(st.temp, key)
	}
	if errors.Is(err, fs.ErrExist) && st.folderAt(key) {
		return errFolder
	}
	if err != nil {
		return fmt.Errorf("linking to the name: %w", mapError(err))
	}
	return nil
}

// errFolder means that a folder has the name of the key. Another name would not be fs.ErrExist.
var errFolder = fmt.Errorf("a folder stands there: %w", storagedrivers.ErrInvalidKey)

func (st *staged) folderAt(key string) bool {
	stat, err := st.root.Lstat(key)
	return err == nil && stat.IsDir()
}

// replace replaces the object under key, which keeps a second name in the scratch folder until
// Close. At every moment, and after a power failure, the key has the old or the new object. An
// exchange of two names does not ensure that: the log of btrfs may hold one half of it.
func (st *staged) replace(_ *os.File, key string) error {
	if st.folderAt(key) {
		return errFolder
	}
	if err := st.nameTemp(); err != nil {
		return err
	}
	backup := st.temp + asideOld
	if st.group.recorded() {
		backup = st.group.asideOf(st.group.stepOf(st)) + asideOld
	}
	for {
		err := st.driver.keep(st.root, key, backup)
		if err == nil {
			st.driver.mark("kept the old object")
			if err = st.root.Rename(st.temp, key); err == nil {
				st.temp = ""
				if !st.group.recorded() {
					st.backup = backup
				}
			} else if !st.group.recorded() {
				err = errors.Join(err, st.root.Remove(backup))
			}
		} else if errors.Is(err, fs.ErrNotExist) { // nothing to replace, unless another process is faster
			if err = st.root.Link(st.temp, key); errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("replacing: %w", mapError(err))
		}
		return nil
	}
}

// keep ensures that the object under key has the second name aside, and that no other object has
// it. Without an object it returns fs.ErrNotExist.
func (d *Driver) keep(root *os.Root, key, aside string) error {
	err := d.linkAside(root, key, aside)
	if err == nil {
		return nil
	}
	kept, asideErr := root.Lstat(aside)
	if asideErr != nil {
		return err
	}
	if there, err := root.Lstat(key); err == nil && os.SameFile(there, kept) {
		return nil
	}
	// Another process has replaced or removed the object since.
	if err := root.Remove(aside); err != nil {
		return err
	}
	return errors.Join(d.linkAside(root, key, aside), d.syncDir(root, path.Dir(aside)))
}

// linkAside links an object to a second name, or copies it: where fs.protected_hardlinks is set, a
// user cannot link a file of another owner, proc_sys_fs(5).
func (d *Driver) linkAside(root *os.Root, key, aside string) error {
	if !d.copies {
		if err := root.Link(key, aside); !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	from, err := root.OpenFile(key, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	stat, err := from.Stat()
	if err == nil && stat.IsDir() {
		err = errFolder
	}
	if err != nil {
		return err
	}
	to, err := root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, from); err == nil {
		err = stamp(to, stat.ModTime())
	}
	if err == nil && d.sync {
		err = d.syncFile(to)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, root.Remove(aside))
	}
	return nil
}

// nameTemp ensures that the file has a name in the scratch folder.
func (st *staged) nameTemp() error {
	if st.temp != "" {
		return nil
	}
	name, err := st.driver.scratchName(st.root)
	if err != nil {
		return err
	}
	folder, err := st.root.Open(path.Dir(name))
	if err != nil {
		return fmt.Errorf("opening the scratch folder: %w", mapError(err))
	}
	defer folder.Close()
	if err := linkUnnamed(st.file, folder, path.Base(name)); err != nil {
		return fmt.Errorf("naming the temporary file: %w", mapError(err))
	}
	st.temp = name
	return nil
}

// Rollback removes the object, or restores the one that it replaced, unless another writer has
// replaced it since. If it cannot restore an object, that stays in the scratch folder with a
// record, and the next Rollback or the next start restores it.
func (st *staged) Rollback(context.Context) error {
	mine, err := st.file.Stat()
	if err != nil {
		return mapError(err)
	}
	there, err := st.root.Lstat(st.key)
	if gone := errors.Is(err, fs.ErrNotExist); st.undoing == "" && (gone || err == nil && !os.SameFile(mine, there)) {
		return nil
	} else if err != nil && !gone {
		return mapError(err)
	}
	err = st.undo(etag(mine))
	st.driver.mark("rolled back")
	if err != nil {
		return fmt.Errorf("undoing: %w", mapError(err))
	}
	return st.driver.syncDir(st.root, path.Dir(st.key))
}

// undo undoes a Commit. The key may have no object for a moment, so that a restored object needs a
// record. Where none can be written, the old object is renamed over the new one. Then an object that
// another writer stores at this moment is lost.
func (st *staged) undo(tag string) error {
	if st.group.recorded() {
		return st.group.undoer().undo(st.group.stepOf(st).intent)
	}
	u := &undoer{driver: st.driver, root: st.root}
	if st.undoing == "" {
		name, err := st.driver.scratchName(st.root)
		if err != nil {
			return err
		}
		u.folder = path.Dir(name)
		if st.backup == "" {
			return u.undo(intent{Do: create, Key: st.key, ETag: tag, Aside: base(name)})
		}
		aside := strings.TrimSuffix(base(st.backup), asideOld)
		err = u.record(name+recordSuffix, intent{Do: replace, Key: st.key, ETag: tag, Aside: aside})
		if err != nil { // such as a full disk
			if renameErr := st.root.Rename(st.backup, st.key); renameErr != nil {
				return errors.Join(err, renameErr)
			}
			st.backup = ""
			return nil
		}
		st.undoing, st.backup = name+recordSuffix, "" // it belongs to the record
	}
	u.folder = path.Dir(st.undoing)
	if err := u.undoGroup(st.undoing); err != nil {
		return fmt.Errorf("the old object is kept by %s: %w", st.undoing, err)
	}
	st.undoing = ""
	return nil
}
