package local

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sync/errgroup"
)

// syncWidth is how many files a group forces to the disk at once: a journal commits them
// together.
const syncWidth = 16

// syncBytes makes the bytes of all members durable, with the record and its name.
func (g *group) syncBytes() error {
	if !g.driver.sync {
		return nil
	}
	files := []*os.File{g.record.file}
	var large errgroup.Group
	large.SetLimit(syncWidth)
	for _, s := range g.steps {
		switch {
		case s.member == nil:
		case s.member.large():
			large.Go(s.member.file.Sync)
		default:
			files = append(files, s.member.file)
		}
	}
	err := g.driver.shared.doAll(len(files), func() error {
		if err := syncAtOnce(files); err != nil {
			return err
		}
		return g.driver.syncDir(g.root, path.Dir(g.record.name))
	}, g.failures())
	if err := errors.Join(err, large.Wait()); err != nil {
		return fmt.Errorf("syncing the files: %w", mapError(err))
	}
	for _, s := range g.steps {
		if s.member != nil {
			s.member.settled = true
		}
	}
	return nil
}

// syncNames makes the names durable, with the files, which count them: see [staged.syncName].
// The replaced objects come first, or a power failure could leave neither.
func (g *group) syncNames() error {
	if !g.driver.sync {
		return nil
	}
	var (
		files   []*os.File
		intents []intent
	)
	for _, s := range g.steps {
		if s.member != nil {
			files = append(files, s.member.file)
		}
		intents = append(intents, s.intent)
	}
	err := g.driver.shared.doAll(len(files), func() error {
		if err := g.driver.syncDir(g.root, path.Dir(g.record.name)); err != nil {
			return err
		}
		if err := syncAtOnce(files); err != nil {
			return err
		}
		for _, folder := range folders(intents) {
			if err := g.driver.syncDir(g.root, folder); err != nil {
				return err
			}
		}
		return nil
	}, g.failures())
	if err != nil {
		return fmt.Errorf("syncing the names: %w", mapError(err))
	}
	return nil
}

func syncAtOnce(files []*os.File) error {
	var all errgroup.Group
	all.SetLimit(syncWidth)
	for _, file := range files {
		all.Go(file.Sync)
	}
	return all.Wait()
}

// failures returns the failures of the disk when the first member was begun.
func (g *group) failures() int {
	failures := -1
	for _, s := range g.steps {
		if s.member != nil && (failures < 0 || s.member.failures < failures) {
			failures = s.member.failures
		}
	}
	return failures
}
