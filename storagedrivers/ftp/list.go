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
		s := &sweeper{driver: d, conn: c, old: old}
		s.takeAll(ctx, l.suspects)
		return nil
	})
	return page, err
}

type lister struct {
	driver *driver
	ctx    context.Context //nolint:containedctx // a lister lives as long as one call
	conn   *conn
	storagedrivers.Walk
	old      time.Time // the latest time of a leftover
	suspects []suspect // that were met
}

// maxSuspects is the most leftovers that are removed with one page.
const maxSuspects = 16

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
		if met := (suspect{key, e}); len(l.suspects) < maxSuspects && met.isLeftover(l.old) {
			l.suspects = append(l.suspects, met)
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

// Sweep searches all folders for temporary files, lock folders and objects that were moved aside by
// processes that died. Only their age distinguishes the first two from those of running processes.
// The error is errors.ErrUnsupported if the server does not, or may not, show hidden names.
func (d *driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	d.manualSweep.Store(true)
	s := &sweeper{driver: d, old: opts.Before(d.now()), dry: opts.DryRun}
	err := s.all(ctx)
	if err == nil && s.conn.withoutHidden && !s.shown {
		err = errHides
	}
	return s.found, errors.Join(append(s.failed, err)...)
}

var errHides = fmt.Errorf("%w: the server shows no hidden names", errors.ErrUnsupported)

// sweepFirst searches all folders in the background after the first check, if the server moves
// objects aside. It searches them again when the locks of processes that have just died are stale.
func (d *driver) sweepFirst() {
	for _, pause := range []time.Duration{0, staleAfter + time.Minute} {
		select {
		case <-d.ctx.Done():
			return
		case <-time.After(pause):
		}
		if d.manualSweep.Load() {
			return
		}
		s := &sweeper{driver: d, old: storagedrivers.SweepOptions{}.Before(d.now())}
		if err := s.all(d.ctx); err != nil {
			d.log.Debug("looking for leftovers", "error", err)
		}
	}
}

// sweeper removes leftovers, or only finds them.
type sweeper struct {
	driver *driver
	conn   *conn
	old    time.Time // the latest time of a leftover
	dry    bool
	rest   []string // folders that are still to be searched
	shown  bool     // hidden names
	found  []storagedrivers.Leftover
	failed []error // of leftovers that could not be removed
}

// all sweeps all folders. It borrows a connection for each of them, so that others get one
// meanwhile.
func (s *sweeper) all(ctx context.Context) error {
	for s.rest = []string{""}; len(s.rest) > 0; {
		prefix := s.rest[0]
		s.rest = s.rest[1:]
		err := s.driver.do(ctx, func(c *conn) error {
			s.conn = c
			return s.folder(ctx, prefix)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// folder sweeps the folder prefix, which is empty or ends with a slash, without the folders in it.
func (s *sweeper) folder(ctx context.Context, prefix string) error {
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
			s.rest = append(s.rest, key+"/")
		case storagedrivers.ValidKey(key) != nil && met.isLeftover(s.old):
			var left *storagedrivers.Leftover
			if left, err = s.take(ctx, met); left != nil {
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
	s.failed = append(s.failed, fmt.Errorf("sweeping %q: %w", key, refusalReason(err, fs.ErrPermission)))
	return nil
}

// suspect is a hidden name in a listing.
type suspect struct {
	key string
	entry
}

// aside returns the key of an object that was moved aside; empty for another suspect.
func (m suspect) aside() string {
	folder, name := path.Split(m.key)
	key, ok := strings.CutPrefix(name, asidePrefix)
	if ok = ok && !m.folder && storagedrivers.ValidKey(folder+key) == nil; !ok {
		return ""
	}
	return folder + key
}

// isLeftover reports whether the suspect is an object that was moved aside, or a temporary file or
// a lock folder older than old, by the time in the listing. Without a time these are no leftovers.
// The time of an object does not say when it was moved, but see [sweeper.restore].
func (m suspect) isLeftover(old time.Time) bool {
	if m.aside() != "" {
		return true
	}
	name := path.Base(m.key)
	temp := !m.folder && strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
	lock := m.folder && strings.HasPrefix(name, lockPrefix)
	return (temp || lock) && !m.modTime.IsZero() && m.modTime.Before(old)
}

// takeAll removes leftovers up to the first error, which does not concern the listing that met them.
func (s *sweeper) takeAll(ctx context.Context, suspects []suspect) {
	for _, met := range suspects {
		if _, err := s.take(ctx, met); err != nil {
			return
		}
	}
}

// take removes a leftover, except in a dry run, and returns it; nil if the suspect is not a
// leftover. The times in a listing may be in any time zone and without a year. Therefore take also
// requests the time of a file from the server.
func (s *sweeper) take(ctx context.Context, met suspect) (*storagedrivers.Leftover, error) {
	if met.aside() != "" {
		return s.restore(ctx, met)
	}
	left := &storagedrivers.Leftover{Name: strings.TrimSuffix(met.key, "/"), ModTime: met.modTime}
	name := path.Clean(s.conn.path(met.key))
	if met.folder {
		if removed, err := s.unlock(name); !removed {
			return nil, err
		}
		return left, nil
	}
	e, err := s.conn.stat(name)
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

// restore renames an object that a dead process has moved aside to its own name, or removes it if
// there is another one by now. It holds the lock of the name meanwhile, as the process would. If it
// does not get the lock, the object is no leftover.
func (s *sweeper) restore(ctx context.Context, met suspect) (*storagedrivers.Leftover, error) {
	aside, dst := s.conn.path(met.key), s.conn.path(met.aside())
	unlock := s.driver.keys.TryLock(dst)
	if unlock == nil {
		return nil, nil //nolint:nilnil // an upload of this process holds it
	}
	defer unlock()
	u := &upload{driver: s.driver, conn: s.conn, mode: storagedrivers.Overwrite, dst: dst}
	if locked, err := u.lockNow(); err != nil || !locked {
		return nil, err
	}
	defer u.unlock(ctx)
	e, err := s.conn.stat(aside)
	if err != nil {
		return nil, ignoreMissing(err) // already restored
	}
	left := &storagedrivers.Leftover{Name: met.key, Size: e.size, ModTime: e.modTime}
	if s.dry {
		return left, nil
	}
	if _, err = s.conn.stat(dst); err == nil {
		return left, s.conn.remove(aside)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = s.conn.rename(aside, dst)
	}
	return left, err
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
	e, err := s.conn.look(lock)
	return err == nil && suspect{lock, e}.isLeftover(s.old), ignoreMissing(err)
}
