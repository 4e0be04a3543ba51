package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Sweep looks through all folders for temporary files and lock folders of processes that died. Only
// their age distinguishes them from those of running processes. Servers that show no hidden names
// are errors.ErrUnsupported, and so are servers that may hide them.
func (d *Driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	d.manualSweep.Store(true)
	s := &sweeper{old: opts.Before(d.now()), dry: opts.DryRun}
	err := d.with(ctx, func(c *conn) error {
		s.conn = c
		err := s.folder("")
		if err == nil && c.plainList && !s.shown {
			err = errHides
		}
		return err
	})
	return s.found, errors.Join(append(s.failed, err)...)
}

var errHides = fmt.Errorf("%w: the server shows no hidden names", errors.ErrUnsupported)

// sweeper removes leftovers, or only finds them.
type sweeper struct {
	conn   *conn
	old    time.Time // the latest time of a leftover
	dry    bool
	shown  bool // hidden names
	found  []storagedrivers.Leftover
	failed []error // of leftovers that could not be removed
}

// folder sweeps the folder prefix, which is empty or ends at a slash.
func (s *sweeper) folder(prefix string) error {
	entries, err := s.conn.list(path.Clean(s.conn.path(prefix)))
	if err != nil {
		return s.goOn(prefix, ignoreMissing(err))
	}
	// A ".lock-*-break" folder comes before its lock, which cannot be broken while that exists.
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(b.name, a.name) })
	for _, e := range entries {
		key := prefix + e.name
		s.shown = s.shown || strings.HasPrefix(e.name, ".")
		switch met := (suspect{key, e}); {
		case storagedrivers.ValidKey(key) == nil && e.folder:
			err = s.folder(key + "/")
		case storagedrivers.ValidKey(key) != nil && met.isLeftover(s.old):
			var left *storagedrivers.Leftover
			if left, err = s.take(met); left != nil {
				s.found = append(s.found, *left)
			}
			err = s.goOn(key, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// goOn records a failure after which the connection still works, and returns any other.
func (s *sweeper) goOn(key string, err error) error {
	if err == nil || s.conn.broken {
		return err
	}
	s.failed = append(s.failed, fmt.Errorf("sweeping %q: %w", key, because(err, fs.ErrPermission)))
	return nil
}

// suspect is a hidden name that was met in a listing.
type suspect struct {
	key string
	entry
}

// isLeftover reports whether it is a temporary file or a lock folder from before old. The time is
// that of the listing; without one it is no leftover.
func (m suspect) isLeftover(old time.Time) bool {
	name := path.Base(m.key)
	temp := !m.folder && strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
	lock := m.folder && strings.HasPrefix(name, lockPrefix)
	return (temp || lock) && !m.modTime.IsZero() && m.modTime.Before(old)
}

// take removes a leftover, unless it is a dry run, and returns it; nil is no leftover. The times in
// a listing can be of any zone, and without a year. So it asks the server for the time of a file
// once more.
func (s *sweeper) take(met suspect) (*storagedrivers.Leftover, error) {
	left := &storagedrivers.Leftover{Name: strings.TrimSuffix(met.key, "/"), ModTime: met.modTime}
	name := path.Clean(s.conn.path(met.key))
	if met.folder {
		if removed, err := s.unlock(name); !removed {
			return nil, err
		}
		return left, nil
	}
	e, err := s.conn.look(name)
	if err != nil {
		return nil, ignoreMissing(err) // already removed
	}
	if !e.modTime.Before(s.old) {
		return nil, nil //nolint:nilnil // see above
	}
	left.Size = e.size
	if !e.modTime.IsZero() {
		left.ModTime = e.modTime
	}
	if s.dry {
		return left, nil
	}
	if err := s.conn.remove(name); err != nil {
		return nil, err
	}
	return left, nil
}

// unlock removes a lock folder and reports whether it did. The lock may have been broken since it
// was listed, and another process may hold it by now. So it is broken as uploads do.
func (s *sweeper) unlock(lock string) (bool, error) {
	if s.dry {
		return s.isOld(lock)
	}
	if !strings.HasSuffix(lock, breakSuffix) {
		return s.conn.breakLock(lock, func() (bool, error) { return s.isOld(lock) })
	}
	if old, err := s.isOld(lock); err != nil || !old {
		return false, err
	}
	err := s.conn.removeFolder(lock)
	return err == nil, err
}

// isOld looks at a lock folder once more.
func (s *sweeper) isOld(lock string) (bool, error) {
	if s.conn.hasFacts() {
		e, err := s.conn.facts(lock)
		return suspect{lock, e}.isLeftover(s.old), ignoreMissing(err)
	}
	entries, err := s.conn.list(path.Dir(lock))
	return slices.ContainsFunc(entries, func(e entry) bool {
		return e.name == path.Base(lock) && suspect{lock, e}.isLeftover(s.old)
	}), ignoreMissing(err)
}
