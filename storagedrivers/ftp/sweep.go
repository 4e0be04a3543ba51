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

// Sweep searches all folders for temporary files and lock folders of processes that died. Only
// their age distinguishes them from those of running processes. The error is errors.ErrUnsupported
// if the server does not, or may not, show hidden names.
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

// folder sweeps the folder prefix, which is empty or ends with a slash.
func (s *sweeper) folder(prefix string) error {
	entries, err := s.conn.list(path.Clean(s.conn.path(prefix)))
	if err != nil {
		return s.goOn(prefix, ignoreMissing(err))
	}
	// A ".lock-*-break" folder is handled before its lock, which cannot be broken while it exists.
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

// goOn records a failure after which the connection still works, and returns any other error.
func (s *sweeper) goOn(key string, err error) error {
	if err == nil || s.conn.broken {
		return err
	}
	s.failed = append(s.failed, fmt.Errorf("sweeping %q: %w", key, because(err, fs.ErrPermission)))
	return nil
}

// suspect is a hidden name in a listing.
type suspect struct {
	key string
	entry
}

// isLeftover reports whether the suspect is a temporary file or a lock folder older than old, by
// the time in the listing. Without a time it is not a leftover.
func (m suspect) isLeftover(old time.Time) bool {
	name := path.Base(m.key)
	temp := !m.folder && strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
	lock := m.folder && strings.HasPrefix(name, lockPrefix)
	return (temp || lock) && !m.modTime.IsZero() && m.modTime.Before(old)
}

// take removes a leftover, except in a dry run, and returns it; nil if the suspect is not a
// leftover. The times in a listing may be in any time zone and without a year. Therefore take also
// requests the time of a file from the server.
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

// unlock removes a lock folder and reports whether it did. Since the listing, the lock may have
// been broken, and another process may hold it. Therefore unlock breaks it as uploads do.
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

// isOld reads the time of a lock folder again and reports whether it is old.
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
