package local

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// List walks the folders in the order of the keys. The cursor is the last name of the previous
// page. For each level, the names of one folder are in memory at a time. Only the objects on the
// page are looked up. A missing root is not created: the listing is empty.
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
	l := &lister{ctx: ctx.Err, folder: f, Walk: storagedrivers.Walk{ListOptions: opts}}
	page, err := l.Page(l.walk(""))
	return page, mapError(err)
}

type lister struct {
	ctx    func() error
	folder *folder
	storagedrivers.Walk
}

// walk adds the objects below prefix, which is empty or ends with a slash.
func (l *lister) walk(prefix string) error {
	if err := l.ctx(); err != nil {
		return err
	}
	entries, err := l.read(path.Clean("./" + prefix))
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
			name += "/" // so that "a-b" sorts before the content of the folder "a"
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

// read returns the entries of a folder. [os.Root] calls lstat for every file.
func (l *lister) read(name string) ([]fs.DirEntry, error) {
	dir := openBeneath(l.folder.dir, name)
	if dir == nil {
		return fs.ReadDir(l.folder.root.FS(), name)
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

// entry adds one object, or a folder or its content, if the page wants them.
func (l *lister) entry(key string) error {
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
	stat, err := l.folder.root.Stat(key) // follows links that stay inside
	if err != nil || !stat.Mode().IsRegular() {
		return nil //nolint:nilerr // gone since, or a link that leads nowhere
	}
	return l.Take(newInfo(key, stat))
}
