package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Sweep removes scratch folders of processes that have ended, each of which is one leftover. It
// replaces the sweep at the first use, so that all of them are returned. It does not create a
// missing root.
func (d *Driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	d.mu.Lock()
	d.swept = true
	if d.unmade() {
		d.mu.Unlock()
		return nil, nil
	}
	root, err := d.openRoot()
	own := d.scratch
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	names, err := scratchFolders(root)
	if err != nil {
		return nil, mapError(err)
	}
	s := &sweeper{driver: d, root: root, before: d.now().Add(-opts.OlderThan), dry: opts.DryRun}
	var found []storagedrivers.Leftover
	var failed []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		if own != nil && own.name == name { // without locks only the name shows it
			continue
		}
		left, err := s.folder(name)
		switch {
		case errors.Is(err, errEarlier): // the first use has logged it
		case err != nil:
			failed = append(failed, fmt.Errorf("sweeping %q: %w", name, mapError(err)))
		case left != nil:
			found = append(found, *left)
		}
	}
	return found, errors.Join(failed...)
}

// sweepAll recovers the commits of processes that have ended. It removes their scratch folders of any
// age, unless Sweep was called, whose caller decides.
func (d *Driver) sweepAll(root *os.Root) error {
	names, err := scratchFolders(root)
	if err != nil {
		return err
	}
	s := &sweeper{driver: d, root: root, keep: d.swept}
	for _, name := range names {
		if _, err := s.folder(name); err != nil {
			// A folder of another process that cannot be removed must not stop the service.
			d.log.Warn("leftovers of an earlier run stay", "folder", name, "error", err)
		}
	}
	d.swept = true
	return nil
}

// scratchFolders returns the names of all scratch folders, of any process.
func scratchFolders(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), scratchPrefix) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// sweeper removes scratch folders, or only finds them.
type sweeper struct {
	driver *Driver
	root   *os.Root
	before time.Time // the last write to a leftover was before; zero is any time
	dry    bool
	keep   bool // recover commits, remove nothing
}

// folder removes a scratch folder and returns it; nil if it is not a leftover. It does not even
// lock a young folder, because the folder's process may be about to.
func (s *sweeper) folder(name string) (*storagedrivers.Leftover, error) {
	if stat, err := s.root.Lstat(name); err == nil && s.young(stat.ModTime()) {
		return nil, nil //nolint:nilnil // see above
	}
	folder, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // already removed
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if tryLock(folder) != nil {
		return nil, nil //nolint:nilnil // in use, or unknown
	}
	if !stillThere(s.root, name) {
		return nil, nil //nolint:nilnil // already removed
	}
	left := s.measure(name)
	if s.young(left.ModTime) {
		return nil, nil //nolint:nilnil // something was written to it lately
	}
	if s.dry {
		return &left, nil
	}
	r := &recovery{driver: s.driver, root: s.root, folder: name}
	if err := r.all(); err != nil {
		return nil, err
	}
	if s.keep {
		return nil, nil //nolint:nilnil // the caller of Sweep decides
	}
	return &left, s.root.RemoveAll(name)
}

func (s *sweeper) young(changed time.Time) bool {
	return !s.before.IsZero() && !changed.Before(s.before)
}

// measure returns the total size of a scratch folder and the time of the last write.
func (s *sweeper) measure(name string) storagedrivers.Leftover {
	left := storagedrivers.Leftover{Name: name}
	unknown := false
	_ = fs.WalkDir(s.root.FS(), name, func(_ string, entry fs.DirEntry, err error) error {
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
