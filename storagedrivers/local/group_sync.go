package local

import (
	"errors"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"
)

// syncWidth is how many files and folders of a group are synced at the same time. A file system
// with a journal commits them together.
const syncWidth = 16

// syncs are syncs that may end in any order.
type syncs []func() error

func (s syncs) wait() error {
	var all errgroup.Group
	all.SetLimit(syncWidth)
	for _, one := range s {
		all.Go(one)
	}
	return all.Wait()
}

// folder adds the sync of the names in a folder.
func (s *syncs) folder(g *group, name string) {
	*s = append(*s, func() error { return g.driver.syncDir(g.root, name) })
}

// syncBytes makes the bytes of all members durable, with the record and its name.
func (g *group) syncBytes() error {
	if !g.driver.sync {
		return nil
	}
	var small, large syncs
	small = append(small, func() error { return g.driver.syncFile(g.record.file) })
	small.folder(g, path.Dir(g.record.name))
	for _, s := range g.steps {
		switch {
		case s.member == nil:
		case s.member.large():
			large = append(large, s.member.syncFile)
		default:
			small = append(small, s.member.syncFile)
		}
	}
	if err := errors.Join(g.durable(small), large.wait()); err != nil {
		return fmt.Errorf("syncing the files: %w", mapError(err))
	}
	for _, s := range g.steps {
		if s.member != nil {
			s.member.sealed = true
		}
	}
	return nil
}

// syncNames makes the names durable. It also syncs the files, which count their names; see
// [staged.syncName].
func (g *group) syncNames() error {
	if !g.driver.sync {
		return nil
	}
	var names syncs
	for _, s := range g.steps {
		if s.member != nil {
			names = append(names, s.member.syncFile)
		}
	}
	for _, folder := range folders(g.intents()) {
		names.folder(g, folder)
	}
	if err := g.durable(names); err != nil {
		return fmt.Errorf("syncing the names: %w", mapError(err))
	}
	return nil
}

// durable runs the syncs, or shares a sync of the file system.
func (g *group) durable(own syncs) error { return g.driver.shared.do(own.wait, g.failures()) }

// failures returns the number of failed syncs when the first member, or else the group, was
// created.
func (g *group) failures() int {
	failures := g.failed
	for _, s := range g.steps {
		if s.member != nil {
			failures = min(failures, s.member.failures)
		}
	}
	return failures
}
