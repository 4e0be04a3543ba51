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

// List walks the folders in the order of the keys. The cursor is the last name of the previous
// page. For each level, the names of one folder are in memory at a time.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	l := &lister{Walk: storagedrivers.Walk{ListOptions: opts}, old: storagedrivers.SweepOptions{}.Before(d.now())}
	var page storagedrivers.Page
	err := d.with(ctx, func(c *conn) error {
		l.conn = c
		var err error
		page, err = l.Page(l.folder(opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]))
		if err == nil && !d.manualSweep.Load() {
			l.sweep(ctx, d)
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
	old      time.Time // the latest time of a leftover
	suspects []suspect // that were met
}

// maxSuspects is the most leftovers that are removed with one page.
const maxSuspects = 16

// sweep removes leftovers until one cannot be removed. Errors do not concern the listing.
func (l *lister) sweep(ctx context.Context, d *Driver) {
	s := &sweeper{driver: d, conn: l.conn, old: l.old}
	for _, met := range l.suspects {
		if _, err := s.take(ctx, met); err != nil {
			return
		}
	}
}

// folder adds the objects below prefix, which is empty or ends with a slash.
func (l *lister) folder(prefix string) error {
	entries, err := l.conn.list(path.Clean(l.conn.path(prefix)))
	if err != nil {
		return ignoreMissing(err) // removed while walking
	}
	for i, e := range entries {
		if e.folder {
			entries[i].name += "/" // so that "a-b" sorts before the content of the folder "a"
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
	if e.link {
		var err error
		if e, err = l.conn.look(l.conn.path(key)); err != nil {
			return ignoreMissing(err) // it leads to a folder, or nowhere
		}
	}
	return l.Take(newInfo(key, e))
}
