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
)

// group changes several names as one. The order of its steps makes it safe against crashes: it
// makes all bytes and the record durable, then changes the names, then makes the names durable,
// then voids the record durably. See [record] and [undoer].
type group struct {
	driver *Driver
	root   *os.Root // of all members; nil before the first
	steps  []*groupStep
	record *record // nil before Prepare, and for a single name: that is whole by itself
	failed int     // of the disk when it was begun
	done   bool
}

// groupStep is one name of a group.
type groupStep struct {
	intent
	member *staged // nil for an object that is removed
}

// Group returns a new group.
func (d *Driver) Group() storagedrivers.Group { return &group{driver: d, failed: d.shared.failures()} }

// mark calls the hook of a test.
func (d *Driver) mark(step string) {
	if d.step != nil {
		d.step(step)
	}
}

// Plan checks the key, so that the record need not be changed for another one later.
func (g *group) Plan(
	ctx context.Context, member storagedrivers.Staged, key string, opts storagedrivers.PutOptions,
) error {
	st, ok := member.(*staged)
	if !ok {
		return fmt.Errorf("%w: staged by another driver: %T", errors.ErrUnsupported, member)
	}
	if g.root == nil && g.driver == st.driver {
		g.root = st.root
	}
	if g.root != st.root {
		return fmt.Errorf("the root was replaced: %w", storagedrivers.ErrUnavailable)
	}
	does := create
	if opts.Mode == storagedrivers.Overwrite {
		does = replace
	} else if g.taken(key) {
		return fs.ErrExist
	}
	g.steps = append(g.steps, &groupStep{intent: intent{Do: does, Key: key}, member: st})
	st.group = g
	return ctx.Err()
}

// taken reports whether the key exists, or is planned for another member.
func (g *group) taken(key string) bool {
	if slices.ContainsFunc(g.steps, func(s *groupStep) bool { return s.Key == key }) {
		return true
	}
	stat, err := g.root.Lstat(key)
	return err == nil && !stat.IsDir() // Commit has the error for a folder
}

// PlanRemove plans nothing for a missing object.
func (g *group) PlanRemove(ctx context.Context, key string) error {
	if g.root == nil { // a group of removals
		root, err := g.driver.open()
		if err != nil {
			return err
		}
		g.root = root
	}
	if stat, err := g.root.Lstat(key); err == nil && !stat.IsDir() {
		g.steps = append(g.steps, &groupStep{intent: intent{Do: remove, Key: key}})
	}
	return ctx.Err()
}

// Prepare writes the record and makes it and all bytes durable, in one wait.
func (g *group) Prepare(ctx context.Context) error {
	if err := ctx.Err(); err != nil || len(g.steps) < 2 {
		return err
	}
	for _, s := range g.steps {
		if err := g.prepare(s); err != nil {
			return err
		}
	}
	name, err := g.driver.scratchName(g.root)
	if err != nil {
		return err
	}
	if g.record, err = newRecord(g.root, name+recordSuffix, g.intents()); err != nil {
		return err
	}
	g.driver.mark("recorded")
	for _, s := range g.steps {
		if err := g.keep(s); err != nil {
			return err
		}
	}
	if err := g.syncBytes(); err != nil {
		return err
	}
	g.driver.mark("prepared")
	return nil
}

// prepare completes the intent of a step.
func (g *group) prepare(s *groupStep) error {
	if st := s.member; st != nil {
		if err := st.stamp(); err != nil {
			return err
		}
		stat, err := st.file.Stat()
		if err != nil {
			return mapError(err)
		}
		s.ETag = etag(stat)
	}
	name, err := g.driver.scratchName(g.root)
	if err != nil {
		return err
	}
	s.Aside = base(name)
	return nil
}

// keep keeps the object that a step will replace or remove. Its second name must be durable before
// it loses the first one.
func (g *group) keep(s *groupStep) error {
	if s.Do == create {
		return nil
	}
	err := g.driver.keep(g.root, s.Key, g.asideOf(s)+asideOld)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keeping the old object: %w", mapError(err))
	}
	g.driver.mark("kept the old object")
	return nil
}

// recorded reports whether the group has a record. Then the record must contain each new name.
func (g *group) recorded() bool { return g != nil && g.record != nil }

func (g *group) stepOf(st *staged) *groupStep {
	return g.steps[slices.IndexFunc(g.steps, func(s *groupStep) bool { return s.member == st })]
}

// announce adds the key of a member to the record if it differs from the planned one.
func (g *group) announce(st *staged, key string) error {
	s := g.stepOf(st)
	if s.Key == key {
		return nil
	}
	if err := g.undoer().removeAside([]intent{s.intent}); err != nil { // it is that of the planned key
		return fmt.Errorf("removing an aside name: %w", mapError(err))
	}
	s.Key = key
	if err := g.prepare(s); err != nil {
		return err
	}
	return g.amend(s)
}

func (g *group) amend(s *groupStep) error {
	if err := errors.Join(g.record.add(s.intent), g.keep(s)); err != nil {
		return err
	}
	if g.driver.sync {
		err := errors.Join(g.driver.syncFile(g.record.file), g.driver.syncDir(g.root, path.Dir(g.record.name)))
		if err != nil {
			return fmt.Errorf("syncing a record: %w", mapError(err))
		}
	}
	g.driver.mark("record added to")
	return nil
}

// Remove removes the first name of the object.
func (g *group) Remove(ctx context.Context, key string) error {
	if !g.recorded() {
		if err := g.driver.inPlace(); err != nil {
			return err
		}
		if err := g.driver.Delete(ctx, key); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	s := g.removal(key)
	if s == nil { // it was not there when it was planned
		if err := g.PlanRemove(ctx, key); err != nil {
			return err
		}
		if s = g.removal(key); s == nil {
			return nil
		}
		if err := g.prepare(s); err != nil {
			return err
		}
		if err := g.amend(s); err != nil {
			return err
		}
	}
	err := g.driver.keep(g.root, key, g.asideOf(s)+asideOld)
	if err == nil {
		err = g.root.Remove(key)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing: %w", mapError(err))
	}
	g.driver.mark("removed")
	return nil
}

// removal returns the planned Remove of an object.
func (g *group) removal(key string) *groupStep {
	for _, s := range g.steps {
		if s.Key == key && s.Do == remove {
			return s
		}
	}
	return nil
}

func (g *group) asideOf(s *groupStep) string { return path.Dir(g.record.name) + "/" + s.Aside }

// Finish makes the names durable, then voids the record and makes that durable too. A record that
// reappears after a power failure would undo an acknowledged request.
func (g *group) Finish(context.Context) error {
	if !g.recorded() {
		return nil
	}
	if err := g.syncNames(); err != nil {
		return err
	}
	g.driver.mark("durable")
	if err := g.driver.inPlace(); err != nil {
		return err
	}
	if err := g.record.void(); err != nil {
		return err
	}
	g.driver.mark("void")
	if g.driver.sync {
		if err := g.durable(syncs{func() error { return g.driver.syncBy(syncData, g.record.file) }}); err != nil {
			return fmt.Errorf("syncing a record: %w", mapError(err))
		}
	}
	g.done = true
	return nil
}

// Close undoes the group unless it is complete, and removes the record and the aside names. If it
// cannot undo the group, all of them stay for the next start.
func (g *group) Close() error {
	if !g.recorded() {
		return nil
	}
	u := g.undoer()
	if !g.done {
		if err := errors.Join(g.record.file.Close(), u.undoGroup(g.record.name)); err != nil {
			return fmt.Errorf("undoing %s, which the next start tries again: %w", g.record.name, mapError(err))
		}
		return nil
	}
	err := errors.Join(u.removeAside(g.intents()), g.record.close())
	g.driver.mark("closed")
	return err
}

func (g *group) undoer() *undoer {
	return &undoer{driver: g.driver, root: g.root, folder: path.Dir(g.record.name)}
}

func (g *group) intents() []intent {
	all := make([]intent, len(g.steps))
	for i, s := range g.steps {
		all[i] = s.intent
	}
	return all
}

// Interface guards
var _ storagedrivers.Group = (*group)(nil)
