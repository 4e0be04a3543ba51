package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// Sweep removes scratch folders of processes that have ended, each of which is one leftover. It
// replaces the sweep at the first use, so that all of them are returned. It does not create a
// missing root.
func (d *Driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	f, err := d.beginSweep()
	if err != nil || f == nil {
		return nil, err
	}
	defer f.release()
	names, err := f.scratchFolders()
	if err != nil {
		return nil, mapError(err)
	}
	f.mu.Lock()
	own := f.scratch
	f.mu.Unlock()
	s := &sweeper{folder: f, before: d.now().Add(-opts.OlderThan), dry: opts.DryRun}
	var found []storagedrivers.Leftover
	var failed []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		if own != nil && own.name == name { // without locks only the name shows it
			continue
		}
		left, err := s.sweep(name)
		if err != nil {
			failed = append(failed, fmt.Errorf("sweeping %q: %w", name, mapError(err)))
		} else if left != nil {
			found = append(found, *left)
		}
	}
	return found, errors.Join(failed...)
}

// beginSweep returns the folder without sweeping it; nil if it is yet to be created.
func (d *Driver) beginSweep() (*folder, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = true
	if d.unmade() {
		return nil, nil //nolint:nilnil // no folder has no leftovers
	}
	f, err := d.openRoot(true)
	if err != nil {
		return nil, err
	}
	f.references.Acquire()
	return f, nil
}

// sweepAll recovers the commits of processes that have ended. It removes their scratch folders of
// any age, unless Sweep was called, whose caller decides. Driver.mu must be held.
func (f *folder) sweepAll() error {
	names, err := f.scratchFolders()
	if err != nil {
		return err
	}
	s := &sweeper{folder: f, keep: f.swept}
	for _, name := range names {
		if _, err := s.sweep(name); err != nil {
			// A folder of another process that cannot be removed must not stop the service.
			f.log.Warn("leftovers of an earlier run stay", "folder", name, "error", err)
		}
	}
	return nil
}

// scratchFolders returns the names of all scratch folders, of any process.
func (f *folder) scratchFolders() ([]string, error) {
	root, err := f.openFolder(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var names []string
	for {
		entries, err := root.ReadDir(listing.KeepFrom) // the objects may be here, a million of them
		for _, entry := range entries {
			if entry.IsDir() && strings.HasPrefix(entry.Name(), scratchPrefix) {
				names = append(names, entry.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// sweeper removes scratch folders, or only finds them.
type sweeper struct {
	folder *folder
	before time.Time // the last write to a leftover was before; zero is any time
	dry    bool
	keep   bool // recover commits, remove nothing
}

// sweep removes a scratch folder and returns it; nil if it is not a leftover. It does not even
// lock a young folder, because the folder's process may be about to.
func (s *sweeper) sweep(name string) (*storagedrivers.Leftover, error) {
	if stat, err := s.folder.root.Lstat(name); err == nil && s.young(stat.ModTime()) {
		return nil, nil //nolint:nilnil // see above
	}
	lock, err := s.folder.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // already removed
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if tryLock(lock) != nil {
		return nil, nil //nolint:nilnil // in use, or unknown
	}
	if !stillThere(s.folder.root, name) {
		return nil, nil //nolint:nilnil // already removed
	}
	left := s.measure(name)
	if s.young(left.ModTime) {
		return nil, nil //nolint:nilnil // something was written to it lately
	}
	if s.dry {
		return &left, nil
	}
	r := &recovery{folder: s.folder, scratch: name}
	if err := r.all(); err != nil {
		return nil, err
	}
	if s.keep {
		return nil, nil //nolint:nilnil // the caller of Sweep decides
	}
	return &left, s.folder.root.RemoveAll(name)
}

func (s *sweeper) young(changed time.Time) bool {
	return !s.before.IsZero() && !changed.Before(s.before)
}

// measure returns the total size of a scratch folder and the time of the last write.
func (s *sweeper) measure(name string) storagedrivers.Leftover {
	left := storagedrivers.Leftover{Name: name}
	unknown := false
	_ = fs.WalkDir(s.folder.root.FS(), name, func(_ string, entry fs.DirEntry, err error) error {
		var stat fs.FileInfo
		if err == nil {
			stat, err = entry.Info()
		}
		if err != nil {
			unknown = true
			return nil //nolint:nilerr // unreadable files may be removable
		}
		if stat.Mode().IsRegular() {
			left.Size += stat.Size()
		}
		if stat.ModTime().After(left.ModTime) {
			left.ModTime = stat.ModTime()
		}
		return nil
	})
	if unknown {
		left.Size = -1
	}
	return left
}
