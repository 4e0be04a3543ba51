package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// List walks the folders in the order of the keys. The cursor is the last name of the previous
// page. Names of large folders are kept for the next pages, and for other listings while their
// folder is unchanged. Only the objects on the page are looked up. A missing root is not created:
// the listing is empty.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	d.mu.Lock()
	unmade := d.unmade()
	d.mu.Unlock()
	if unmade {
		return storagedrivers.Page{}, ctx.Err()
	}
	f, err := d.open(ctx)
	if err != nil {
		return storagedrivers.Page{}, err
	}
	defer f.release()
	l := &lister{
		ctx: ctx, folder: f, goesOn: f.names.TakeCursor(opts.Cursor),
		Walk: storagedrivers.Walk{ListOptions: opts},
	}
	page, err := l.Page(l.walk(""))
	f.names.AddCursor(page.Next)
	return page, mapError(err)
}

type lister struct {
	ctx    context.Context //nolint:containedctx // a lister lives as long as one call
	folder *folder
	goesOn bool // a listing that has read the folders of its cursor
	storagedrivers.Walk
}

// walk adds the objects below prefix, which is empty or ends with a slash.
func (l *lister) walk(prefix string) error {
	begins := len(l.Cursor) <= len(prefix) || !strings.HasPrefix(l.Cursor, prefix)
	var dir *os.File
	defer func() { _ = dir.Close() }() // nothing was written to it
	read := func(from string) (n *names, err error) {
		_ = dir.Close()
		if dir, err = l.folder.openFolder(path.Clean("./" + prefix)); err == nil {
			n, err = l.names(dir, prefix, from, begins)
		}
		begins = false
		if errors.Is(err, fs.ErrNotExist) || isNotDir(err) { // removed while walking
			return nil, nil //nolint:nilnil // there are no names
		}
		return n, err
	}
	return l.folder.names.Walk(l.ListOptions, prefix, read, func(name string, _ *string) error { return l.entry(dir, prefix, name) })
}

// names returns the names of a folder from one name on. A listing that goes on in it may use those
// of its last page. One that begins needs only some.
func (l *lister) names(dir *os.File, prefix, from string, begins bool) (*names, error) {
	unlock, err := l.folder.names.Reading.Lock(l.ctx, prefix)
	if err != nil {
		return nil, err
	}
	defer unlock()
	n := &names{Prefix: prefix, From: from, State: state{changed: changed(dir)}}
	if n.State.folder, err = dir.Stat(); err != nil {
		return nil, err
	}
	if kept := l.folder.names.Find(prefix, from); kept != nil && (kept.State.isSame(n.State) ||
		l.goesOn && !begins && os.SameFile(kept.State.folder, n.State.folder)) {
		return kept, nil
	}
	if !n.State.changed.Before(l.folder.now().Add(-settleTime)) {
		n.State.changed = time.Time{} // the next change may have the same time
	}
	limit := l.folder.names.Most
	if begins {
		limit = min(limit, l.folder.firstNames)
	}
	if err := readNames(l.ctx, dir, n, limit); err != nil {
		return nil, err
	}
	l.folder.names.Add(n)
	return n, nil
}

// entry adds one object of a folder, or a folder or its content, if the page wants them.
func (l *lister) entry(dir *os.File, prefix, name string) error {
	key := prefix + name
	enters := strings.HasSuffix(key, "/") && l.Enters(key)
	if !enters && !l.Wants(key) {
		return nil
	}
	if valid := storagedrivers.ValidKey(strings.TrimSuffix(key, "/")) == nil; !valid {
		return nil // hidden, or of another program
	}
	if enters {
		return l.walk(key)
	}
	if strings.HasSuffix(key, "/") {
		return l.TakeFolder(key)
	}
	if info, ok := infoIn(dir, name, key); ok {
		return l.Take(info)
	}
	stat, err := l.folder.root.Stat(key) // follows links that stay inside
	if err != nil || !stat.Mode().IsRegular() {
		return nil //nolint:nilerr // gone since, or a link that leads nowhere
	}
	return l.Take(newInfo(key, stat))
}

const (
	// keepNames is the largest number of names in memory, about 50 MiB. A larger folder is listed in
	// parts of at least half as many.
	keepNames = 1 << 20
	// firstNames is the largest number of names in memory for the first page of a folder. It needs
	// few, and sorting a million takes longer than reading them.
	firstNames = 1 << 12
	// settleTime is longer than the steps of the clock of any file system.
	settleTime = 3 * time.Second
)

// names are the names of a folder.
type names = listing.Folder[string, state]

// state is that of a folder when its names were read.
type state struct {
	folder  fs.FileInfo
	changed time.Time // zero if its names may change without it
}

// isSame reports whether the names of a folder are the same in two states.
func (s state) isSame(other state) bool {
	return os.SameFile(s.folder, other.folder) && !s.changed.IsZero() && s.changed.Equal(other.changed)
}

// readNames reads the names of a folder from n.From on. It keeps the smallest ones if there are
// more than limit.
func readNames(ctx context.Context, dir *os.File, n *names, limit int) error {
	for {
		entries, err := dir.ReadDir(listing.KeepFrom)
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() {
				name += "/"
			}
			if name >= n.From && (n.To == "" || name <= n.To) {
				n.Sorted = append(n.Sorted, name)
			}
		}
		last := errors.Is(err, io.EOF)
		if last || len(n.Sorted) >= limit {
			slices.Sort(n.Sorted)
			n.Sorted = slices.Compact(n.Sorted) // some file systems repeat names that change meanwhile
		}
		if len(n.Sorted) >= limit {
			n.Sorted = slices.Delete(n.Sorted, limit/2, len(n.Sorted))
			n.To = n.Sorted[len(n.Sorted)-1]
		}
		if last {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}
