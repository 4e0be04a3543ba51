package sftp

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// List walks the folders in the order of the keys, starting at the folder of the prefix. The cursor
// is the last name of the previous page. The entries of large folders are kept for the next pages,
// see [listing.Remote]; what this process changes meanwhile is looked up. Links to folders are not
// followed.
func (d *driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	return do(ctx, d.pool, func(c *conn) (storagedrivers.Page, error) {
		l := &lister{
			driver: d, ctx: ctx, c: c, sweeper: d.sweeper(ctx, c, storagedrivers.SweepOptions{DryRun: d.manualSweep.Load()}),
			Walk: storagedrivers.Walk{ListOptions: opts},
		}
		return l.Page(l.folder(opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]))
	})
}

type lister struct {
	driver  *driver
	ctx     context.Context //nolint:containedctx // a lister lives as long as one call
	c       *conn
	sweeper *sweeper // of hidden names
	storagedrivers.Walk
}

// entry is a file or folder.
type entry struct {
	key  string      // with a slash at the end, if it is a folder
	stat fs.FileInfo // nil if it is to be looked up
}

// folder adds the objects below prefix, which is empty or ends with a slash.
func (l *lister) folder(prefix string) error {
	kept := &l.driver.kept
	read := func(from string) (*listing.Folder[entry, time.Time], error) {
		return kept.Folder(l.ctx, l.ListOptions, prefix, from, func() ([]entry, error) {
			return l.driver.readFolder(l.ctx, l.c, prefix, l.sweeper.hidden)
		})
	}
	return kept.Walk(l.ListOptions, prefix, read, func(name string, e *entry) error {
		if e == nil {
			e = &entry{key: prefix + name}
		}
		return l.entry(*e)
	})
}

// entry adds one object, or a folder or its content, if the page wants them.
func (l *lister) entry(e entry) error {
	if strings.HasSuffix(e.key, "/") {
		if l.Enters(e.key) {
			return l.folder(e.key)
		}
		return l.TakeFolder(e.key)
	}
	if !l.Wants(e.key) {
		return nil
	}
	if e.stat == nil || e.stat.Mode()&fs.ModeSymlink != 0 {
		var err error
		if e.stat, err = l.c.Stat(l.driver.path(e.key)); err != nil {
			if unavailable(err) {
				return err
			}
			return nil // it is gone, or leads nowhere
		}
	}
	if !e.stat.Mode().IsRegular() {
		return nil
	}
	return l.Take(newInfo(e.key, e.stat))
}

// listAttempts bounds how often a folder is read if files vanish from it meanwhile.
const listAttempts = 10

// readFolder returns the entries of a folder. It passes names that are no valid keys to hidden
// instead. A missing folder is empty.
func (d *driver) readFolder(
	ctx context.Context, c *conn, prefix string, hidden func(entry),
) ([]entry, error) {
	path := strings.TrimSuffix(d.path(prefix), "/")
	if path == "" {
		path = "/"
	}
	stats, err := c.ReadDirContext(ctx, path)
	for attempt := 1; err != nil; attempt++ {
		stat, statErr := c.Stat(path)
		if statErr == nil && !stat.IsDir() || errors.Is(statErr, fs.ErrNotExist) || failed(statErr) && c.isBelowFile(path) {
			return nil, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || attempt == listAttempts {
			return nil, err
		}
		stats, err = c.ReadDirContext(ctx, path) // some hosts stumble over a file that was removed meanwhile
	}
	entries := make([]entry, 0, len(stats))
	for _, stat := range stats {
		key := prefix + stat.Name()
		if stat, err = c.typed(path, stat); errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		} else if err != nil {
			return nil, err
		}
		switch {
		case storagedrivers.ValidKey(key) != nil:
			hidden(entry{key, stat})
		case stat.IsDir(): // the slash sorts "a-b" before the content of the folder "a"
			entries = append(entries, entry{key + "/", stat})
		default:
			entries = append(entries, entry{key, stat})
		}
	}
	return entries, nil
}

// isBelowFile reports whether a parent of a path is a file. Hosts have no status of their own for
// that.
func (c *conn) isBelowFile(path string) bool {
	for path != "" {
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
		if stat, err := c.Stat(path); err == nil {
			return !stat.IsDir()
		}
	}
	return false
}

// typeBits of a mode are that of a file, a folder or the like.
const typeBits = 0o170000

// typed returns an entry of a folder. It looks up one that the host has listed without attributes,
// or without its type.
func (c *conn) typed(folder string, stat fs.FileInfo) (fs.FileInfo, error) {
	if listed, ok := stat.Sys().(*pkgsftp.FileStat); !ok || listed.Mode&typeBits != 0 {
		return stat, nil
	}
	return c.Lstat(strings.TrimSuffix(folder, "/") + "/" + stat.Name())
}
