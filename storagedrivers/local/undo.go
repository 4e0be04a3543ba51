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

// asideOld is the suffix of an aside name for a replaced object if the system cannot exchange two
// names, asideNew that for a created object that is being removed.
const (
	asideOld = ".old"
	asideNew = ".new"
)

// undoer undoes the groups of a process that has died. It holds the lock of the process's scratch
// folder.
type undoer struct {
	driver *Driver
	root   *os.Root
	folder string
}

// undoGroups undoes all groups in a scratch folder that are neither complete nor undone.
func (u *undoer) undoGroups() error {
	entries, err := fs.ReadDir(u.root.FS(), u.folder)
	if err != nil {
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
	if err != nil { // the record stays, for the next start
		return errors.Join(err, rec.file.Close())
	}
	u.driver.mark("undone")
	return errors.Join(rec.void(), rec.close())
}

// undo undoes one name. It is idempotent.
func (u *undoer) undo(one intent) error {
	aside := u.folder + "/" + one.Aside
	switch one.Do {
	case remove:
		return u.putBackRemoved(aside, one.Key)
	case create:
		return u.takeAway(one, aside)
	case replace:
		return u.restore(one, aside)
	default:
		return nil // not valid
	}
}

// restore restores the replaced object, or removes the new one if nothing was replaced.
func (u *undoer) restore(one intent, aside string) error {
	there, err := u.root.Lstat(one.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !is(one.ETag)(there) {
		return nil // not replaced, undone, or changed by another process since
	}
	if err != nil {
		return err
	}
	for _, backup := range []string{aside + asideOld, aside} {
		old, err := u.root.Lstat(backup)
		if err != nil || os.SameFile(old, there) {
			continue
		}
		_, err = u.driver.putBack(u.root, backup, one.Key, is(one.ETag))
		u.driver.mark("put back")
		return err
	}
	if _, err := u.root.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
		u.driver.log.Warn("the object that an upload replaced before it was aborted is lost", "key", one.Key)
		return nil
	}
	return u.takeAway(one, aside) // nothing was replaced
}

func (u *undoer) putBackRemoved(aside, key string) error {
	err := u.root.Link(aside, key)
	u.driver.mark("put back")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil // not removed, put back already, or stored by another process since
	}
	return err
}

// takeAway removes a created object. An earlier attempt may have moved the object of another
// process aside; that gets its name back.
func (u *undoer) takeAway(one intent, aside string) error {
	aside += asideNew
	if moved, err := u.root.Lstat(aside); err == nil {
		if err := returnAside(u.root, aside, one.Key, is(one.ETag)(moved)); err != nil {
			return err
		}
	}
	there, err := u.root.Lstat(one.Key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !is(one.ETag)(there) {
		return nil
	}
	if err == nil {
		err = takeAway(u.root, one.Key, aside, is(one.ETag))
	}
	u.driver.mark("taken away")
	return err
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

// putBack restores a replaced object. If another process has since replaced the object that mine
// identifies, its object stays. It reports whether backup still exists.
func (d *Driver) putBack(root *os.Root, backup, key string, mine func(fs.FileInfo) bool) (left bool, err error) {
	err = d.swap(root, backup, key)
	if errors.Is(err, errors.ErrUnsupported) {
		return false, root.Rename(backup, key)
	}
	if err != nil {
		return true, err
	}
	if came, err := root.Lstat(backup); err != nil || mine(came) {
		return true, err
	}
	return true, d.swap(root, backup, key)
}

// takeAway removes a created object, unless another process has replaced it. aside is a free name
// in the scratch folder.
func takeAway(root *os.Root, key, aside string, mine func(fs.FileInfo) bool) error {
	if err := root.Rename(key, aside); err != nil {
		return err
	}
	came, err := root.Lstat(aside)
	return returnAside(root, aside, key, err != nil || mine(came))
}

// returnAside completes takeAway: it removes the aside name, after an object of another process has
// its name back.
func returnAside(root *os.Root, aside, key string, mine bool) error {
	if !mine {
		if err := root.Link(aside, key); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return root.Remove(aside)
}

// swap exchanges two names in one step.
func (d *Driver) swap(root *os.Root, a, b string) error {
	if d.moves {
		return errors.ErrUnsupported
	}
	dirA, err := root.Open(path.Dir(a))
	if err != nil {
		return err
	}
	defer dirA.Close()
	dirB, err := root.Open(path.Dir(b))
	if err != nil {
		return err
	}
	defer dirB.Close()
	return exchange(dirA, path.Base(a), dirB, path.Base(b))
}

// base returns the aside name of an intent for a name in the scratch folder.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
