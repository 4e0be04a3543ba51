package ftp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// List walks the folders in the order of the keys. The cursor is the last key of the page
// before. One folder's names are in memory at a time, for each level.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	l := &lister{opts: opts, limit: opts.PageLimit(), old: d.now().Add(-leftoverAge)}
	err := d.with(ctx, func(c *conn) error {
		l.conn = c
		start := opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]
		err := l.folder(start)
		if errors.Is(err, errPageFull) {
			l.page.Next, err = l.page.Objects[l.limit-1].Key, nil
		}
		if err == nil {
			l.sweep()
		}
		return err
	})
	if err != nil {
		return storagedrivers.Page{}, err
	}
	return l.page, nil
}

var errPageFull = errors.New("page full")

type lister struct {
	conn      *conn
	opts      storagedrivers.ListOptions
	limit     int
	page      storagedrivers.Page
	old       time.Time // what is from before is nobody's any more
	leftovers []leftover
}

// folder adds the objects below prefix, which is empty or ends at a slash.
func (l *lister) folder(prefix string) error {
	entries, err := l.conn.list(path.Clean(l.conn.path(prefix)))
	if err != nil {
		return ignoreMissing(err) // removed while walking
	}
	for i, e := range entries {
		if e.folder {
			entries[i].name += "/" // so that "a-b" sorts before what is in the folder "a"
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range entries {
		if err := l.entry(prefix+e.name, e); err != nil {
			return err
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// entry adds one object, or those of a folder, if the page wants them.
func (l *lister) entry(key string, e entry) error {
	if valid := storagedrivers.ValidKey(strings.TrimSuffix(key, "/")) == nil; !valid {
		l.suspect(key, e) // hidden, or somebody else's
		return nil
	}
	if e.folder {
		if !l.opts.Enters(key) {
			return nil
		}
		return l.folder(key)
	}
	if !l.opts.Wants(key) {
		return nil
	}
	if e.link {
		var err error
		if e, err = l.conn.look(l.conn.path(key)); err != nil {
			return ignoreMissing(err) // it leads to a folder, or nowhere
		}
	}
	if len(l.page.Objects) == l.limit {
		return errPageFull
	}
	l.page.Objects = append(l.page.Objects, describe(key, e))
	return nil
}

// Leftovers are temporary files and lock folders of processes that died.
const (
	leftoverAge  = 24 * time.Hour
	maxLeftovers = 16 // that are removed with one page
)

type leftover struct {
	path   string
	folder bool
}

// suspect remembers a leftover.
func (l *lister) suspect(key string, e entry) {
	name := path.Base(key)
	temp := !e.folder && strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
	lock := e.folder && strings.HasPrefix(name, lockPrefix)
	if (temp || lock) && len(l.leftovers) < maxLeftovers && e.modTime.Before(l.old) {
		l.leftovers = append(l.leftovers, leftover{path.Clean(l.conn.path(key)), e.folder})
	}
}

// sweep removes leftovers until one stays; why is not the listing's matter. The times in a
// listing can be of any zone, and without a year: a file is looked at once more.
func (l *lister) sweep() {
	for _, left := range l.leftovers {
		var err error
		if left.folder {
			err = l.conn.removeFolder(left.path)
		} else if e, looked := l.conn.look(left.path); looked == nil && e.modTime.Before(l.old) {
			err = l.conn.remove(left.path)
		}
		if err != nil {
			return
		}
	}
}
