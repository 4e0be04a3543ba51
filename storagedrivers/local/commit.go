package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

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
		if err := sync(st.file.Sync); err != nil {
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

// large reports whether the file is synced on its own, so that no other upload waits for it.
func (st *staged) large() bool { return st.size > writeBehind }

// syncName syncs the new name, and the file again: the file counts its names, and a file system
// without a journal removes a file that counts none.
func (st *staged) syncName(dir *os.File, name string) error {
	if !st.driver.sync {
		return nil
	}
	return st.durable(func() error {
		if err := st.file.Sync(); err != nil {
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

// replace replaces the object under key, which stays in the scratch folder until Close. At every
// moment a reader finds the old or the new object.
func (st *staged) replace(dir *os.File, key string) error {
	if st.folderAt(key) {
		return errFolder
	}
	folder, err := st.nameTemp()
	if err != nil {
		return err
	}
	defer folder.Close()
	for {
		err := st.exchange(folder, dir, key)
		if errors.Is(err, errors.ErrUnsupported) {
			err = st.rename(key)
		}
		if errors.Is(err, fs.ErrNotExist) { // nothing to replace, unless another process is faster
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

// exchange swaps the file, in the scratch folder, with the object that it replaces.
func (st *staged) exchange(folder, dir *os.File, key string) error {
	if st.driver.moves {
		return errors.ErrUnsupported
	}
	swap := func() error { return exchange(folder, path.Base(st.temp), dir, path.Base(key)) }
	if err := swap(); err != nil {
		return err
	}
	if st.folderAt(st.temp) { // it was made since the caller looked
		return errors.Join(errFolder, swap())
	}
	st.temp, st.backup = "", st.temp
	return nil
}

// rename replaces an object if the system cannot exchange two names: the old object gets a second
// name, then loses its first one to the new object in one step. Without an old object it returns
// fs.ErrNotExist.
func (st *staged) rename(key string) error {
	backup := st.temp + asideOld
	if err := st.root.Link(key, backup); err != nil {
		return err
	}
	st.backup = backup
	st.driver.mark("kept the old object")
	if err := st.root.Rename(st.temp, key); err != nil {
		return err
	}
	st.temp = ""
	return nil
}

// nameTemp ensures that the file has a name in the scratch folder, and opens that folder.
func (st *staged) nameTemp() (*os.File, error) {
	name := st.temp
	if name == "" {
		var err error
		if name, err = st.driver.scratchName(st.root); err != nil {
			return nil, err
		}
	}
	folder, err := st.root.Open(path.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("opening the scratch folder: %w", mapError(err))
	}
	if st.temp == "" {
		if err := linkUnnamed(st.file, folder, path.Base(name)); err != nil {
			return nil, errors.Join(fmt.Errorf("naming the temporary file: %w", mapError(err)), folder.Close())
		}
		st.temp = name
	}
	return folder, nil
}

// Rollback removes the object, or restores the one that it replaced, unless another writer has
// replaced it since.
func (st *staged) Rollback(context.Context) error {
	mine, err := st.file.Stat()
	if err != nil {
		return mapError(err)
	}
	there, err := st.root.Lstat(st.key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, there) {
		return nil
	}
	if err != nil {
		return mapError(err)
	}
	isMine := func(stat fs.FileInfo) bool { return os.SameFile(mine, stat) }
	if st.backup != "" {
		var left bool
		if left, err = st.driver.putBack(st.root, st.backup, st.key, isMine); !left {
			st.backup = ""
		}
	} else {
		err = st.takeAway(isMine)
	}
	st.driver.mark("rolled back")
	if err != nil {
		return fmt.Errorf("undoing: %w", mapError(err))
	}
	return st.driver.syncDir(st.root, path.Dir(st.key))
}

// takeAway removes a created object. In a group it uses the recorded aside name.
func (st *staged) takeAway(mine func(fs.FileInfo) bool) error {
	aside := st.group.aside(st)
	if aside == "" {
		name, err := st.driver.scratchName(st.root)
		if err != nil {
			return err
		}
		aside = name
	}
	return takeAway(st.root, st.key, aside+asideNew, mine)
}
