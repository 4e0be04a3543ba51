package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// List walks the folders in the order of the keys. The cursor is the last key of the
// page before. One folder's names are in memory at a time, for each level.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	root, err := d.open()
	if err != nil {
		return storagedrivers.Page{}, err
	}
	l := &lister{ctx: ctx.Err, root: root, opts: opts, limit: opts.PageLimit()}
	err = l.folder("")
	if errors.Is(err, errPageFull) {
		last := l.page.Objects[len(l.page.Objects)-1]
		l.page.Next, err = last.Key, nil
	}
	return l.page, mapError(err)
}

var errPageFull = errors.New("page full")

type lister struct {
	ctx   func() error
	root  *os.Root
	opts  storagedrivers.ListOptions
	limit int
	page  storagedrivers.Page
}

// folder adds the objects below prefix, which is empty or ends at a slash.
func (l *lister) folder(prefix string) error {
	if err := l.ctx(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(l.root.FS(), path.Clean("./"+prefix))
	if errors.Is(err, fs.ErrNotExist) { // removed while walking
		return nil
	}
	if err != nil {
		return err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/" // so that "a-b" sorts before what is in the folder "a"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.entry(prefix + name); err != nil {
			return err
		}
	}
	return nil
}

// entry adds one object, or those of a folder, if the page wants them.
func (l *lister) entry(key string) error {
	if valid := storagedrivers.ValidKey(strings.TrimSuffix(key, "/")) == nil; !valid {
		return nil // hidden, or somebody else's
	}
	if strings.HasSuffix(key, "/") {
		if !l.opts.Enters(key) {
			return nil
		}
		return l.folder(key)
	}
	if !l.opts.Wants(key) {
		return nil
	}
	stat, err := l.root.Stat(key) // follows links that stay inside
	if err != nil || !stat.Mode().IsRegular() {
		return nil //nolint:nilerr // gone since, or a link that leads nowhere
	}
	if len(l.page.Objects) == l.limit {
		return errPageFull
	}
	l.page.Objects = append(l.page.Objects, describe(key, stat))
	return nil
}
