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

// List walks the folders in the order of the keys. The cursor is the last name of the page
// before. One folder's names are in memory at a time, for each level.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	l := &lister{Walk: storagedrivers.Walk{ListOptions: opts}, old: d.now().Add(-leftoverAge)}
	var page storagedrivers.Page
	err := d.with(ctx, func(c *conn) error {
		l.conn = c
		var err error
		page, err = l.Page(l.folder(opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]))
		if err == nil {
			l.sweep()
		}
		return err
	})
	if err != nil {
		return storagedrivers.Page{}, err
	}
	return page, nil
}

type lister struct {
	conn *conn
	storagedrivers.Walk
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

// entry adds one object, or a folder or what is in it, if the page wants them.
func (l *lister) entry(key string, e entry) error {
	if valid := storagedrivers.ValidKey(strings.TrimSuffix(key, "/")) == nil; !valid {
		l.suspect(key, e) // hidden, or somebody else's
		return nil
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
	if e.link {
		var err error
		if e, err = l.conn.look(l.conn.path(key)); err != nil {
			return ignoreMissing(err) // it leads to a folder, or nowhere
		}
	}
	return l.Take(describe(key, e))
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
