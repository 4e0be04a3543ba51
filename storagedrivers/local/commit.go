package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// A commit changes one name by one system call: link(2) to create, rename(2) to replace, unlink(2).
//
// A commit of several names has a record. It makes the bytes and the record durable, in one wait.
// Then it links the new names. Up to here, every change can be undone by removing a name. If an
// object is to be replaced or removed, the new names are made durable, and then the record says so
// that the commit is decided: from here on it is only completed, also after a crash. In the end the
// names are made durable. See [record] and [recovery]. Where there is no space for a record,
// objects can still be removed, one by one.
type commit struct {
	folder *folder
	steps  []*step
	infos  []storagedrivers.Info
	record *record     // nil for one name
	failed int         // syncs of the disk when the oldest member was begun
	isLost func() bool // see [storagedrivers.WithLease]
}

// step is the change of one name.
type step struct {
	intent
	index  int     // of the change
	staged *staged // nil for an object that is removed
	mode   storagedrivers.Mode
	match  string // the ETag of the only object that it may change; empty for any
	keeps  bool   // the object that the next change removes or replaces
	missed bool   // another process was faster to remove or replace the object
	done   bool
}

// errOutdated means that a name was taken or became free since the commit was planned.
var errOutdated = errors.New("the name has changed meanwhile")

// Commit makes all changes or none.
func (d *Driver) Commit(ctx context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	// The root was looked at for the staged object, and is again once the object has its name.
	lone := len(changes) == 1 && changes[0].Staged != nil && changes[0].Options.Mode == storagedrivers.CreateOnly
	f, err := d.acquire(ctx, !lone)
	if err != nil {
		return nil, err
	}
	defer f.release()
	for {
		c, err := f.plan(changes)
		if err != nil {
			return nil, err
		}
		c.isLost = func() bool { return storagedrivers.LeaseLost(ctx) }
		switch len(c.steps) {
		case 0: // removals of nothing
		case 1:
			err = c.single()
		default:
			err = c.several()
		}
		if !errors.Is(err, errOutdated) {
			return c.infos, err
		}
	}
}

// plan finds out which changes create, replace or remove an object.
func (f *folder) plan(changes []storagedrivers.Change) (*commit, error) {
	c := &commit{folder: f, infos: make([]storagedrivers.Info, len(changes)), failed: f.shared.failures()}
	var taken []int
	for i, change := range changes {
		s, err := c.step(change, len(changes) == 1)
		if errors.Is(err, fs.ErrExist) {
			taken = append(taken, i)
		} else if err != nil {
			return nil, &storagedrivers.CommitError{Index: i, Err: err}
		}
		if s != nil {
			s.index, s.keeps = i, change.Keeps
			c.steps = append(c.steps, s)
		}
	}
	if taken != nil {
		return nil, &storagedrivers.ExistsError{Taken: taken}
	}
	return c, nil
}

// step returns the step of a change; nil for the removal of a missing object.
func (c *commit) step(change storagedrivers.Change, alone bool) (*step, error) {
	s := &step{intent: intent{Do: create, Key: change.Key}, mode: change.Options.Mode, match: change.Options.IfMatch}
	if change.Staged != nil {
		st, ok := change.Staged.(*staged)
		if !ok {
			return nil, fmt.Errorf("%w: staged by another driver: %T", errors.ErrUnsupported, change.Staged)
		}
		if st.folder != c.folder {
			return nil, errReplaced
		}
		s.staged, c.failed = st, min(c.failed, st.failures)
		if alone && s.mode == storagedrivers.CreateOnly {
			return s, nil // link(2) finds out whether the name is free
		}
	}
	there, mode, err := c.folder.stat(change.Key, false)
	isFolder := err == nil && mode.IsDir()
	if err := c.compare(s); err != nil {
		return nil, err
	}
	switch {
	case isFolder && s.staged != nil:
		return s, c.folder.clear(s.Key)
	case err != nil && s.staged != nil: // linking has the error, if it is any other than that nothing is there
	case isFolder, err != nil && errors.Is(c.folder.lookupError(err), fs.ErrNotExist):
		return nil, nil //nolint:nilnil // there is nothing to remove
	case err != nil:
		return nil, mapError(err)
	case s.staged == nil:
		s.Do, s.ETag = remove, there.ETag
	case s.mode == storagedrivers.CreateOnly:
		return nil, fs.ErrExist
	default:
		s.Do, s.Old = replace, there.ETag
	}
	return s, nil
}

// single makes one change. A replacement cannot be undone: if the name cannot be made durable, the
// object stays replaced.
func (c *commit) single() error {
	f, s := c.folder, c.steps[0]
	if s.staged == nil {
		if err := f.remove(s.Key); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := errors.Join(s.staged.seal(), c.complete(s)); err != nil {
		return err
	}
	f.mark("sealed")
	var dir *os.File
	var err error
	if s.Do == create {
		dir, err = c.create(s)
	} else if dir, err = f.openExisting(path.Dir(s.Key)); err == nil {
		err = c.replace(s, dir)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = errOutdated
	}
	if dir != nil {
		defer dir.Close()
	}
	if err != nil {
		return commitError(s, err)
	}
	f.mark("named")
	if err = s.staged.syncName(dir, path.Dir(s.Key)); err == nil {
		err = f.inPlace() // it may have been replaced meanwhile
	}
	switch {
	case err == nil:
		return nil
	case s.Do == create:
		return c.undo(s.index, err)
	}
	return &storagedrivers.CommitError{Index: s.index, Err: err, Replaced: []int{s.index}}
}

// compare returns an error unless the object to change is still the one of the condition, which may
// be read through a symbolic link. Syncing the new one may have taken long. Another process may
// change it after that, because it knows no lock.
func (c *commit) compare(s *step) error {
	if s.match == "" {
		return nil
	}
	there, err := c.folder.root.Stat(s.Key)
	if err = c.folder.lookupError(err); errors.Is(err, fs.ErrNotExist) || err == nil && etag(there) != s.match {
		return storagedrivers.ErrChanged
	}
	return err
}

// commitError returns the error of a step that has changed nothing.
func commitError(s *step, err error) error {
	switch {
	case errors.Is(err, errOutdated):
		return err
	case errors.Is(err, fs.ErrExist):
		return &storagedrivers.ExistsError{Taken: []int{s.index}}
	}
	return &storagedrivers.CommitError{Index: s.index, Err: mapError(err)}
}

// complete sets the time of a staged object, and fills the rest of the intent and the Info.
func (c *commit) complete(s *step) error {
	st := s.staged
	if err := st.stamp(); err != nil {
		return err
	}
	stat, err := st.file.Stat()
	if err != nil {
		return mapError(err)
	}
	s.ETag, c.infos[s.index] = etag(stat), newInfo(s.Key, stat)
	return nil
}

// createAttempts bounds how often the folder of a new object is made: other commits may remove it
// while it is empty.
const createAttempts = 100

// create links a staged object to its name, in its folder, which the caller must close.
func (c *commit) create(s *step) (*os.File, error) {
	for attempt := 1; ; attempt++ {
		dir, err := c.folder.openDir(s.Key)
		if err == nil {
			if err = s.staged.create(dir, s.Key); err == nil {
				s.done = true
				return dir, nil
			}
			_ = dir.Close() // it was only read
		}
		switch {
		case errors.Is(err, fs.ErrExist) && s.mode == storagedrivers.Overwrite:
			return nil, errOutdated
		case errors.Is(err, storagedrivers.ErrInvalidKey), attempt == createAttempts,
			!errors.Is(mapReadError(err), fs.ErrNotExist):
			return nil, err
		}
	}
}

// replace renames a staged object to the name of another one in its folder.
func (c *commit) replace(s *step, dir *os.File) error {
	unnamed := s.staged.temp == ""
	if err := s.staged.nameTemp(); err != nil {
		return err
	}
	if err := c.compare(s); err != nil {
		return err
	}
	err := rename(c.folder.scratch.lock, path.Base(s.staged.temp), dir, path.Base(s.Key))
	if errors.Is(err, errors.ErrUnsupported) {
		err = c.folder.root.Rename(s.staged.temp, s.Key)
	}
	switch {
	case c.folder.isGone(s.staged.temp, err):
		return errOutdated
	case err == nil && unnamed && s.Old != s.ETag: // two names of one file would both stay, rename(2)
		s.staged.temp = ""
	}
	return err
}

// several makes changes with a record.
func (c *commit) several() error {
	if err := c.prepare(); err != nil {
		failed := c.undo(-1, err)
		if errors.Is(err, storagedrivers.ErrNoSpace) && c.removesOnly() && !isLeft(failed) {
			return c.removeInTurn()
		}
		return failed
	}
	var creations, others []*step
	for _, s := range c.steps {
		if s.Do != create {
			others = append(others, s)
			continue
		}
		creations = append(creations, s)
		dir, err := c.create(s)
		if err != nil {
			return c.undo(s.index, err)
		}
		_ = dir.Close() // it was only read
		c.folder.mark("named")
	}
	state := recordDecided
	if len(others) == 0 {
		state = recordVoid // durably: an open record that reappears would undo the commit
	}
	err := c.nameDurably(creations)
	for _, s := range others {
		if err == nil {
			err = c.compare(s)
		}
	}
	if err == nil {
		err = c.setRecord(state)
	}
	if err != nil {
		return c.undo(-1, err)
	}
	if state == recordVoid {
		c.removeRecord()
		return nil
	}
	if err = c.apply(others); err != nil {
		err = c.apply(others)
	}
	if err == nil {
		err = c.nameDurably(others)
	}
	if err == nil {
		err = c.dropKept()
	}
	if err != nil && !errors.Is(err, storagedrivers.ErrChanged) {
		return c.leave(err)
	}
	c.removeRecord() // one that reappears finds none of the old objects, and changes nothing
	return err
}

// dropKept removes what is kept of objects that this commit was to remove, and that another process
// has removed or replaced since the commit was decided. Then it returns ErrChanged: the other one
// keeps them too.
func (c *commit) dropKept() (changed error) {
	for i, s := range c.steps {
		if !s.missed || i == 0 || !c.steps[i-1].keeps {
			continue
		}
		kept := c.steps[i-1].intent
		if _, err := c.recovery().takeAway(kept); err != nil {
			return err
		}
		if err := c.folder.syncFolders([]intent{kept}); err != nil {
			return err
		}
		changed = &storagedrivers.CommitError{Index: s.index, Err: storagedrivers.ErrChanged}
	}
	return changed
}

// prepare writes the record and makes it and all bytes durable, in one wait. The object of a
// replacement has a durable name before.
func (c *commit) prepare() error {
	for _, s := range c.steps {
		if s.staged != nil {
			if err := c.complete(s); err != nil {
				return err
			}
		}
		var name string
		var err error
		if s.Do == replace {
			err = s.staged.nameTemp()
			if name = s.staged.temp; err == nil { // which must not need space when the commit is decided
				err = mapError(c.folder.root.Link(name, name+asideNew))
			}
		} else {
			name, err = c.folder.scratchName()
		}
		if err != nil {
			return err
		}
		s.Aside = path.Base(name)
	}
	name, err := c.folder.scratchName()
	if err != nil {
		return err
	}
	if c.record, err = newRecord(c.folder.root, name+recordSuffix, c.intents(c.steps)); err != nil {
		return err
	}
	c.folder.mark("recorded")
	if err := c.syncBytes(); err != nil {
		return err
	}
	c.folder.mark("prepared")
	return nil
}

// removesOnly reports whether the commit stores no object.
func (c *commit) removesOnly() bool {
	return !slices.ContainsFunc(c.steps, func(s *step) bool { return s.Do != remove })
}

// isLeft reports whether any part of a failed commit may stay.
func isLeft(err error) bool {
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	return !ok || len(failed.Stored) > 0
}

// removeInTurn removes objects durably, one after the other, where there is no space for a record.
// A crash leaves the last ones.
func (c *commit) removeInTurn() error {
	var removed []int
	for _, s := range c.steps {
		err := c.compare(s)
		if err == nil {
			err = c.folder.remove(s.Key)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &storagedrivers.CommitError{Index: s.index, Err: err, Replaced: removed}
		}
		removed = append(removed, s.index)
		c.folder.mark("removed")
	}
	return nil
}

// apply replaces and removes objects. One failure does not stop the others.
func (c *commit) apply(steps []*step) error {
	r := c.recovery()
	var failed []error
	for _, s := range steps {
		if s.done {
			continue
		}
		var err error
		if s.Do == replace {
			err = r.replace(s.intent)
		} else {
			var taken bool
			taken, err = r.takeAway(s.intent)
			s.missed = !taken
		}
		if s.done = err == nil; err != nil {
			failed = append(failed, fmt.Errorf("changing %q: %w", s.Key, mapError(err)))
		}
		c.folder.mark("applied")
	}
	return errors.Join(failed...)
}

// nameDurably makes names durable, in the folder that is at the path.
func (c *commit) nameDurably(steps []*step) error {
	if err := c.syncNames(steps); err != nil {
		return err
	}
	c.folder.mark("durable")
	return c.folder.inPlace()
}

// setRecord makes a state of the record durable.
func (c *commit) setRecord(state string) error {
	if err := c.record.set(state); err != nil {
		return err
	}
	if state == recordVoid {
		c.folder.mark("void")
	} else {
		c.folder.mark("decided")
	}
	if !c.folder.sync {
		return nil
	}
	if err := c.durable(syncs{func() error { return c.folder.syncBy(syncData, c.record.file) }}); err != nil {
		return fmt.Errorf("syncing a record: %w", mapError(err))
	}
	return nil
}

// removeRecord removes the record. This need not be durable, and its failure changes nothing.
func (c *commit) removeRecord() {
	if err := c.record.close(); err != nil {
		c.folder.log.Warn("removing a record", "name", c.record.name, "error", err)
	}
	c.folder.mark("closed")
}

// undo removes the new names after a failure at the change of an index. If it cannot, the record
// stays, and the next start undoes the commit. Without its lease it leaves the names.
func (c *commit) undo(index int, cause error) error {
	var err error
	isLost := c.isLost()
	if !isLost {
		err = c.undoNames()
	}
	c.folder.mark("undone")
	if err == nil && c.record != nil {
		if err = c.setRecord(recordVoid); err == nil {
			c.removeRecord()
		}
	}
	switch {
	case err == nil && isLost:
	case err == nil && index >= 0:
		return commitError(c.steps[slices.IndexFunc(c.steps, func(s *step) bool { return s.index == index })], cause)
	case err == nil:
		return &storagedrivers.CommitError{Index: index, Err: mapError(cause)}
	case c.record != nil:
		err = errors.Join(err, c.record.file.Close())
	}
	if errors.Is(cause, fs.ErrExist) || errors.Is(cause, errOutdated) {
		cause = errors.New(cause.Error()) // another key would not help
	}
	return c.unfinished(index, cause, err)
}

// undoNames removes the new names durably.
func (c *commit) undoNames() error {
	var undone []intent
	for _, s := range slices.Backward(c.steps) {
		if s.Do == replace && s.Aside != "" {
			if err := c.folder.root.Remove(c.folder.scratch.name + "/" + s.Aside + asideNew); ignoreMissing(err) != nil {
				return err
			}
		}
		if s.Do != create || !s.done {
			continue
		}
		// A file that loses its only name could not be linked again.
		if err := s.staged.nameTemp(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if s.Aside == "" {
			name, err := c.folder.scratchName()
			if err != nil {
				return err
			}
			s.Aside = path.Base(name)
		}
		if _, err := c.recovery().takeAway(s.intent); err != nil {
			return err
		}
		undone = append(undone, s.intent)
	}
	return c.folder.syncFolders(undone)
}

// leave leaves a decided commit to the next start, which completes it.
func (c *commit) leave(cause error) error {
	for _, s := range c.steps {
		if s.Do == replace {
			s.staged.temp = "" // it belongs to the record
		}
	}
	return c.unfinished(-1, fmt.Errorf("the next start completes %s: %w", c.record.name, cause), c.record.file.Close())
}

// unfinished returns the error of a commit of which any part may stay.
func (c *commit) unfinished(index int, cause, undoing error) error {
	failed := &storagedrivers.CommitError{Index: index, Err: mapError(cause), Undo: undoing}
	for _, s := range c.steps {
		failed.Stored = append(failed.Stored, s.index)
	}
	return failed
}

func (c *commit) recovery() *recovery {
	return &recovery{folder: c.folder, scratch: c.folder.scratch.name}
}

func (c *commit) intents(steps []*step) []intent {
	all := make([]intent, len(steps))
	for i, s := range steps {
		all[i] = s.intent
	}
	return all
}

// syncWidth is how many files and folders of a commit are synced at the same time. A file system
// with a journal commits them together.
const syncWidth = 16

// syncs are syncs that may end in any order.
type syncs []func() error

func (s syncs) wait() error {
	all := guard.NewGroup(syncWidth)
	for _, one := range s {
		all.Go(one)
	}
	return all.Wait()
}

// folder adds the sync of the names in a folder.
func (s *syncs) folder(c *commit, name string) {
	*s = append(*s, func() error { return c.folder.syncDir(name, false) })
}

// syncBytes makes the bytes of all staged objects durable, with the record and its name.
func (c *commit) syncBytes() error {
	if !c.folder.sync {
		return nil
	}
	var small, large syncs
	small = append(small, func() error { return c.folder.syncFile(c.record.file) })
	small.folder(c, path.Dir(c.record.name))
	for _, s := range c.steps {
		switch {
		case s.staged == nil:
		case s.staged.large():
			large = append(large, s.staged.syncFile)
		default:
			small = append(small, s.staged.syncFile)
		}
	}
	if err := errors.Join(c.durable(small), large.wait()); err != nil {
		return fmt.Errorf("syncing the files: %w", mapError(err))
	}
	for _, s := range c.steps {
		if s.staged != nil {
			s.staged.sealed = true
		}
	}
	return nil
}

// syncNames makes names durable. It also syncs the files, which count their names; see
// [staged.syncName].
func (c *commit) syncNames(steps []*step) error {
	if !c.folder.sync || len(steps) == 0 {
		return nil
	}
	var names syncs
	for _, s := range steps {
		if s.staged != nil {
			names = append(names, s.staged.syncFile)
		}
	}
	for _, name := range folders(c.intents(steps)) {
		names.folder(c, name)
	}
	if err := c.durable(names); err != nil {
		return fmt.Errorf("syncing the names: %w", mapError(err))
	}
	return nil
}

// durable runs the syncs, or shares a sync of the file system.
func (c *commit) durable(own syncs) error { return c.folder.shared.do(own.wait, c.failed) }
