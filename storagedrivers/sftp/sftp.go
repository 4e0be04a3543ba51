package sftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
)

// driver is the SFTP driver; see [newDriver].
type driver struct {
	config Config
	log    *slog.Logger
	now    func() time.Time
	pool   *pool
	tasks  sync.WaitGroup // everything that runs beside the callers

	probing     sync.Mutex // one experiment at a time
	known       atomic.Pointer[abilities]
	swept       atomic.Bool
	kept        listing.Remote[entry]
	removed     *lru.Cache[string, time.Time] // by path
	manualSweep atomic.Bool                   // Sweep was called: the driver begins none by itself
}

// newDriver returns a driver, which connects at its first use.
func newDriver(config Config, log *slog.Logger) (*driver, error) {
	dialer, err := config.complete()
	if err != nil {
		return nil, err
	}
	d := &driver{config: config, log: log, removed: modtime.NewRemoved(), now: time.Now} //nolint:forbidigo // the clock's one default
	d.kept.Least, d.kept.Most, d.kept.Now = listing.KeepFrom, listing.KeepRemote, d.now
	d.kept.Name = func(prefix string, e entry) string { return e.key[len(prefix):] }
	d.pool = &pool{dialer: dialer, tasks: &d.tasks}
	d.pool.ctx, d.pool.cancel = context.WithCancel(context.Background())
	return d, nil
}

// path returns the path of a key, or of a folder that ends with a slash. It begins with the root or
// "./", so that no host expands a tilde.
func (d *driver) path(key string) string { return strings.TrimSuffix(d.config.Root, "/") + "/" + key }

// Check finds or creates the root. The first Check tests the abilities of the host. It passes if
// the root is read-only.
func (d *driver) Check(ctx context.Context) error {
	err := run(ctx, d.pool, func(c *conn) error {
		stat, err := c.Stat(d.config.Root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err = c.MkdirAll(d.config.Root); err != nil {
				return storagedrivers.WithCause(fmt.Errorf("making the root: %w", err), causeOfRoot(err))
			}
		case err != nil:
			return storagedrivers.WithCause(fmt.Errorf("looking for the root: %w", err), causeOfRoot(err))
		case !stat.IsDir():
			return storagedrivers.WithCause(fmt.Errorf("the root %s is no folder", d.config.Root), storagedrivers.NotAFolder)
		}
		if _, err = d.findAbilities(ctx, c, d.config.Root); err != nil && !unavailable(err) {
			d.log.Warn("nothing can be written to the root", "error", err)
			return nil
		}
		return err
	})
	if err == nil && !d.manualSweep.Load() && !d.swept.Swap(true) {
		d.tasks.Go(d.sweepFirst)
	}
	return err
}

// Space returns the space of the file system of the root, if the host has the extension
// statvfs@openssh.com.
func (d *driver) Space(ctx context.Context) (storagedrivers.Space, error) {
	return do(ctx, d.pool, func(c *conn) (storagedrivers.Space, error) {
		if _, ok := c.HasExtension("statvfs@openssh.com"); !ok {
			return storagedrivers.Space{}, errors.ErrUnsupported
		}
		stat, err := c.StatVFS(d.config.Root)
		switch {
		case unavailable(err):
			return storagedrivers.Space{}, err
		case err != nil: // each host refuses it for such a root in its own way
			return storagedrivers.Space{}, errors.Join(errors.ErrUnsupported, err)
		}
		return storagedrivers.SpaceOf(stat.Frsize, stat.Bavail, stat.Blocks)
	})
}

// Features returns the guarantees that are known so far.
func (d *driver) Features() storagedrivers.Features {
	a := d.abilities()
	f := storagedrivers.Features{Seek: true, Streams: true, ListTimes: true, EmptyFolders: true, Dated: a.dates}
	if a.links {
		f.Create = storagedrivers.Atomic
	}
	if a.replace && a.exact {
		f.Replace = storagedrivers.Atomic
	}
	return f
}

// Close closes the connections and waits for all operations on them.
func (d *driver) Close() error {
	d.pool.cancel()
	d.tasks.Wait()
	d.kept.Close()
	return nil
}

// Stat returns the Info of an object.
func (d *driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	return do(ctx, d.pool, func(c *conn) (storagedrivers.Info, error) { return d.find(c, key) })
}

func (d *driver) find(c *conn, key string) (storagedrivers.Info, error) {
	stat, err := c.Stat(d.path(key))
	switch {
	case failed(err) && d.belowFile(c, key):
		return storagedrivers.Info{}, notAnObject(key)
	case err != nil:
		return storagedrivers.Info{}, err
	case !stat.Mode().IsRegular():
		return storagedrivers.Info{}, notAnObject(key)
	}
	return newInfo(key, stat), nil
}

// belowFile reports whether a part of the key's path is a file, for which some hosts reply
// SSH_FX_FAILURE.
func (d *driver) belowFile(c *conn, key string) bool {
	for i, r := range key {
		if r != '/' {
			continue
		}
		stat, err := c.Stat(d.path(key[:i]))
		if err != nil || !stat.IsDir() {
			return err == nil || errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}

// Delete removes the file. Folders stay, because an upload may be about to use them.
func (d *driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if opts.IfMatch != "" { // only Storage can compare
		return errors.ErrUnsupported
	}
	defer d.kept.Change(key)
	remove := func(c *conn) error {
		info, err := d.find(c, key)
		if err != nil { // Remove would take an empty folder, too
			return err
		}
		d.removed.Add(d.path(key), info.ModTime)
		return c.Remove(d.path(key))
	}
	return run(ctx, d.pool, func(c *conn) error {
		err := remove(c)
		for attempt := 1; failed(err) && attempt < nameAttempts; attempt++ { // it may have become a folder
			err = remove(c)
		}
		return err
	})
}

// Rename renames a file. A link to one may be relative to its folder, and is not renamed.
func (d *driver) Rename(ctx context.Context, source storagedrivers.Info, to string) error {
	defer d.kept.Change(to)
	defer d.kept.Change(source.Key)
	from, path := d.path(source.Key), d.path(to)
	return run(ctx, d.pool, func(c *conn) error {
		stat, err := c.Lstat(from)
		switch {
		case errors.Is(mapError(err), fs.ErrNotExist), err == nil && stat.Mode().IsRegular() && !newInfo(source.Key, stat).Same(source):
			return storagedrivers.ErrChanged
		case err == nil && !stat.Mode().IsRegular():
			return errors.ErrUnsupported
		case err != nil:
			return err
		}
		switch _, err := c.Lstat(path); {
		case err == nil:
			return fs.ErrExist
		case !errors.Is(mapError(err), fs.ErrNotExist):
			return err
		}
		if err = c.MkdirAll(folderOf(path)); err == nil {
			d.removed.Add(from, stat.ModTime())
			err = c.Rename(from, path)
		}
		if err != nil && !unavailable(err) {
			err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
		return err
	})
}

func newInfo(key string, stat fs.FileInfo) storagedrivers.Info {
	return storagedrivers.Info{
		Key: key, Size: stat.Size(), ModTime: stat.ModTime(), ContentType: storagedrivers.ContentType(key),
	}
}

// Interface guards
var (
	_ storagedrivers.Driver        = (*driver)(nil)
	_ storagedrivers.Renamer       = (*driver)(nil)
	_ storagedrivers.Sweeper       = (*driver)(nil)
	_ storagedrivers.SpaceReporter = (*driver)(nil)
)
