package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// asideOld is the suffix of an aside name for a replaced or removed object, asideNew that for a
// created object that is being removed.
const (
	asideOld = ".old"
	asideNew = ".new"
)

// undoer undoes groups of the process that holds the lock of a scratch folder: of this process, or
// of one that has died, with its lock.
type undoer struct {
	driver *Driver
	root   *os.Root
	folder string
}

// undoGroups undoes all groups in a scratch folder that are neither complete nor undone.
func (u *undoer) undoGroups() error {
	entries, err := fs.ReadDir(u.root.FS(), u.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var failed []error
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), recordSuffix) {
			continue
		}
		if err := u.undoGroup(u.folder + "/" + entry.Name()); err != nil {
			failed = append(failed, fmt.Errorf("undoing an aborted upload: %w", err))
		}
	}
	return errors.Join(failed...)
}

// undoGroup undoes a record and removes it with the aside names. If that fails, all of them stay
// for the next attempt.
func (u *undoer) undoGroup(name string) error {
	rec, intents, err := openRecord(u.root, name)
	if err != nil {
		return err
	}
	for _, one := range slices.Backward(intents) {
		err = errors.Join(err, u.undo(one))
	}
	if err == nil {
		err = u.syncFolders(intents)
	}
	u.driver.mark("undone")
	if err == nil {
		err = rec.void()
	}
	if err == nil && u.driver.sync { // a record that reappears would undo a later deletion
		err = u.driver.syncBy(syncData, rec.file)
	}
	if err != nil {
		return errors.Join(err, rec.file.Close())
	}
	u.driver.mark("void")
	return errors.Join(u.removeAside(intents), rec.close())
}

// record writes a durable record for one name, so that a crash while undoing it loses nothing. The
// aside name must be durable before the record can be.
func (u *undoer) record(name string, one intent) error {
	if err := u.driver.syncDir(u.root, u.folder); err != nil {
		return err
	}
	rec, err := newRecord(u.root, name, []intent{one})
	if err != nil {
		return err
	}
	if u.driver.sync {
		err = errors.Join(u.driver.syncFile(rec.file), u.driver.syncDir(u.root, u.folder))
	}
	err = errors.Join(err, rec.file.Close())
	u.driver.mark("recorded")
	return err
}

// undo undoes one name. It is idempotent.
func (u *undoer) undo(one intent) error {
	aside := u.folder + "/" + one.Aside
	if old, err := u.root.Lstat(aside + asideOld); err == nil && is(one.ETag)(old) {
		return nil // an earlier attempt had committed the same adopted file: the key keeps it
	}
	if one.Do != remove {
		if err := u.takeAway(one, aside+asideNew); err != nil {
			return err
		}
	}
	if one.Do != create {
		return u.putBack(one, aside)
	}
	return nil
}

// putBack links the old object to its name again, unless the name has an object. An earlier version
// kept the object without a suffix, where this one has a new object.
func (u *undoer) putBack(one intent, aside string) error {
	for _, backup := range []string{aside + asideOld, aside} {
		old, err := u.root.Lstat(backup)
		if errors.Is(err, fs.ErrNotExist) || err == nil && is(one.ETag)(old) {
			continue
		}
		if err == nil {
			err = u.root.Link(backup, one.Key)
		}
		u.driver.mark("put back")
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return nil
}

// removeAside removes the second names of old objects.
func (u *undoer) removeAside(intents []intent) error {
	var failed []error
	for _, one := range intents {
		if err := u.root.Remove(u.folder + "/" + one.Aside + asideOld); !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// takeAway removes a created object, unless another process has replaced it. It checks the object
// once more when that has lost its name.
func (u *undoer) takeAway(one intent, aside string) error {
	if err := u.returnAside(one, aside); err != nil { // an earlier attempt may have moved another one
		return err
	}
	there, err := u.root.Lstat(one.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !is(one.ETag)(there) {
		return nil
	}
	if err == nil {
		err = u.root.Rename(one.Key, aside)
	}
	if err != nil {
		return err
	}
	u.driver.mark("taken away")
	return u.returnAside(one, aside)
}

// returnAside removes the aside name of a created object. An object of another process gets its
// name back.
func (u *undoer) returnAside(one intent, aside string) error {
	moved, err := u.root.Lstat(aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !is(one.ETag)(moved) {
		if err = u.root.Link(aside, one.Key); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return u.root.Remove(aside)
}

// syncFolders makes the undone changes durable.
func (u *undoer) syncFolders(intents []intent) error {
	var failed []error
	for _, folder := range folders(intents) {
		if _, err := u.root.Lstat(folder); err == nil {
			failed = append(failed, u.driver.syncDir(u.root, folder))
		}
	}
	return errors.Join(failed...)
}

// folders returns the folders in which intents change names.
func folders(intents []intent) []string {
	names := make([]string, len(intents))
	for i, one := range intents {
		names[i] = path.Dir(one.Key)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// base returns the aside name of an intent for a name in the scratch folder.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
