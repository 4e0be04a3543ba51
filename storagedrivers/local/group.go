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
	member  *staged // nil for an object that is removed
	removed bool
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
	intents := make([]intent, len(g.steps))
	for i, s := range g.steps {
		if err := g.prepare(s); err != nil {
			return err
		}
		intents[i] = s.intent
	}
	name, err := g.driver.scratchName(g.root)
	if err != nil {
		return err
	}
	if g.record, err = newRecord(g.root, name+recordSuffix, intents); err != nil {
		return err
	}
	g.driver.mark("recorded")
	if err := g.syncBytes(); err != nil {
		return err
	}
	g.driver.mark("prepared")
	return nil
}

// prepare completes the intent of a step. An object that replaces another one gets a name in the
// scratch folder, which the replaced object has after the exchange.
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
		if s.Do == replace {
			folder, err := st.nameTemp()
			if err != nil {
				return err
			}
			g.driver.mark("staged name")
			s.Aside = base(st.temp)
			return folder.Close()
		}
	}
	name, err := g.driver.scratchName(g.root)
	s.Aside = base(name)
	return err
}

// recorded reports whether the group has a record. Then the record must contain each new name.
func (g *group) recorded() bool { return g != nil && g.record != nil }

// aside returns the name in the scratch folder to which a member may be moved; empty if the group
// has no record.
func (g *group) aside(st *staged) string {
	if !g.recorded() {
		return ""
	}
	return g.asideOf(g.stepOf(st))
}

func (g *group) stepOf(st *staged) *groupStep {
	return g.steps[slices.IndexFunc(g.steps, func(s *groupStep) bool { return s.member == st })]
}

// announce adds the key of a member to the record if it differs from the planned one.
func (g *group) announce(st *staged, key string) error {
	s := g.stepOf(st)
	if s.Key == key {
		return nil
	}
	s.Key = key
	return g.amend(s.intent)
}

func (g *group) amend(one intent) error {
	if err := g.record.add(one); err != nil {
		return err
	}
	if g.driver.sync {
		if err := g.record.file.Sync(); err != nil {
			return fmt.Errorf("syncing a record: %w", mapError(err))
		}
	}
	g.driver.mark("record added to")
	return nil
}

// Remove moves the object aside.
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
		if err := g.amend(s.intent); err != nil {
			return err
		}
	}
	err := g.root.Rename(key, g.asideOf(s))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing: %w", mapError(err))
	}
	s.removed = err == nil
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
		if err := g.durable(syncs{func() error { return syncData(g.record.file) }}); err != nil {
			return fmt.Errorf("syncing a record: %w", mapError(err))
		}
	}
	g.done = true
	return nil
}

// Close restores removed objects unless the group is complete, and removes the record.
func (g *group) Close() error {
	if !g.recorded() {
		return nil
	}
	var failed []error
	for _, s := range slices.Backward(g.steps) {
		if !s.removed {
			continue
		}
		aside := g.asideOf(s)
		if !g.done {
			if err := g.root.Link(aside, s.Key); err != nil && !errors.Is(err, fs.ErrExist) {
				failed = append(failed, fmt.Errorf("putting back: %w", mapError(err)))
				continue
			}
			failed = append(failed, g.driver.syncDir(g.root, path.Dir(s.Key)))
		}
		failed = append(failed, g.root.Remove(aside))
	}
	g.driver.mark("closed")
	if !g.done {
		failed = append(failed, g.record.void())
	}
	return errors.Join(append(failed, g.record.close())...)
}

// Interface guards
var _ storagedrivers.Group = (*group)(nil)
