package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// List walks the folders in the order of the keys. The cursor is the last name of the previous
// page. The entries of large folders are kept for the next pages, see [listing.Remote]; what this
// process changes meanwhile is looked up.
func (d *driver) List(
	ctx context.Context, opts storagedrivers.ListOptions,
) (page storagedrivers.Page, err error) {
	err = d.do(ctx, func(c *conn) error {
		old := storagedrivers.SweepOptions{}.Before(d.now())
		l := &lister{driver: d, ctx: ctx, conn: c, Walk: storagedrivers.Walk{ListOptions: opts}, old: old}
		page, err = l.Page(l.folder(opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]))
		if err != nil || d.manualSweep.Load() {
			return err
		}
		s := &sweeper{conn: c, old: old}
		s.takeAll(l.leftovers)
		return nil
	})
	return page, err
}

type lister struct {
	driver *driver
	ctx    context.Context //nolint:containedctx // a lister lives as long as one call
	conn   *conn
	storagedrivers.Walk
	old       time.Time // the latest time of a leftover
	leftovers []entry   // that were met, with their keys as names
}

// maxLeftovers is how many leftovers are removed with one page.
const maxLeftovers = 16

// folder adds the objects below prefix, which is empty or ends with a slash.
func (l *lister) folder(prefix string) error {
	kept := &l.driver.kept
	read := func(from string) (*listing.Folder[entry, time.Time], error) {
		return kept.Folder(l.ctx, l.ListOptions, prefix, from, func() ([]entry, error) {
			entries, err := l.conn.list(path.Clean(l.conn.path(prefix)))
			for i, e := range entries {
				if e.folder {
					entries[i].name += "/" // so that "a-b" sorts before the content of the folder "a"
				}
			}
			return entries, ignoreMissing(err) // removed while walking
		})
	}
	return kept.Walk(l.ListOptions, prefix, read, func(name string, e *entry) error {
		if e == nil {
			e = &entry{name: name, folder: strings.HasSuffix(name, "/"), changed: true}
		}
		return l.entry(prefix+name, *e)
	})
}

// entry adds one object, or a folder or its content, if the page wants them.
func (l *lister) entry(key string, e entry) error {
	if valid := storagedrivers.ValidKey(strings.TrimSuffix(key, "/")) == nil; !valid {
		if len(l.leftovers) < maxLeftovers && e.isLeftover(l.old) {
			e.name = key
			l.leftovers = append(l.leftovers, e)
		}
		return nil // hidden, or of another program
	}
	if e.folder {
		if l.Enters(key) {
			return l.folder(key)
		}
		return l.TakeFolder(key)
	}
	if !l.Wants(key) {
		return nil
	}
	if e.link || e.changed {
		var err error
		if e, err = l.conn.stat(l.conn.path(key)); err != nil {
			return ignoreMissing(err) // it is gone, or leads to a folder or nowhere
		}
	}
	return l.Take(newInfo(key, e))
}

// Sweep searches all folders for temporary files of aborted uploads. Only their age distinguishes
// them from those of running uploads. The error is errors.ErrUnsupported if the server does not, or
// may not, show hidden names.
func (d *driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	d.manualSweep.Store(true)
	s := &sweeper{old: opts.Before(d.now()), dry: opts.DryRun}
	for s.rest = []string{""}; len(s.rest) > 0; {
		prefix := s.rest[0]
		s.rest = s.rest[1:]
		// A connection for each folder, so that others get one meanwhile.
		err := d.do(ctx, func(c *conn) error {
			s.conn = c
			return s.folder(prefix)
		})
		if err != nil {
			s.failed = append(s.failed, err)
			return s.found, errors.Join(s.failed...)
		}
	}
	if s.conn.withoutHidden && !s.shown {
		s.failed = append(s.failed, errHides)
	}
	return s.found, errors.Join(s.failed...)
}

var errHides = fmt.Errorf("%w: the server shows no hidden names", errors.ErrUnsupported)

// sweeper removes leftovers, or only finds them.
type sweeper struct {
	conn   *conn
	old    time.Time // the latest time of a leftover
	dry    bool
	rest   []string // folders that are still to be searched
	shown  bool     // hidden names
	found  []storagedrivers.Leftover
	failed []error // of leftovers that could not be removed
}

// folder sweeps the folder prefix, which is empty or ends with a slash, without the folders in it.
func (s *sweeper) folder(prefix string) error {
	entries, err := s.conn.list(path.Clean(s.conn.path(prefix)))
	if err != nil {
		return s.goOn(prefix, ignoreMissing(err))
	}
	for _, e := range entries {
		key := prefix + e.name
		s.shown = s.shown || strings.HasPrefix(e.name, ".")
		switch {
		case storagedrivers.ValidKey(key) == nil && e.folder:
			s.rest = append(s.rest, key+"/")
		case storagedrivers.ValidKey(key) != nil && e.isLeftover(s.old):
			if err := s.goOn(key, s.take(key, e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// goOn records a failure after which the connection still works, and returns any other error.
func (s *sweeper) goOn(key string, err error) error {
	if err == nil || s.conn.broken {
		return err
	}
	s.failed = append(s.failed, fmt.Errorf("sweeping %q: %w", key, refusalReason(err, fs.ErrPermission)))
	return nil
}

// isLeftover reports whether a name that is no valid key is that of a temporary file older than
// old, by the time in the listing. Without a time it is no leftover.
func (e entry) isLeftover(old time.Time) bool {
	return !e.folder && strings.HasPrefix(e.name, tempPrefix) && strings.HasSuffix(e.name, tempSuffix) &&
		!e.modTime.IsZero() && e.modTime.Before(old)
}

// takeAll removes leftovers up to the first error, which does not concern the listing that met
// them.
func (s *sweeper) takeAll(leftovers []entry) {
	for _, met := range leftovers {
		if s.take(met.name, met) != nil {
			return
		}
	}
}

// take removes a leftover, except in a dry run. The times in a listing may be in any time zone and
// without a year. Therefore take also requests the time from the server.
func (s *sweeper) take(key string, listed entry) error {
	name := s.conn.path(key)
	e, err := s.conn.stat(name)
	if err != nil {
		return ignoreMissing(err) // already removed
	}
	if !e.modTime.Before(s.old) {
		return nil
	}
	if e.modTime.IsZero() {
		e.modTime = listed.modTime
	}
	if !s.dry {
		if err := s.conn.remove(name); err != nil {
			return err
		}
	}
	s.found = append(s.found, storagedrivers.Leftover{Name: key, Size: e.size, ModTime: e.modTime})
	return nil
}
