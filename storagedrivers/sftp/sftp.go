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

	"github.com/caddymedia/media/storagedrivers"
)

// Driver is the SFTP driver; see [New].
type Driver struct {
	config Config
	log    *slog.Logger
	now    func() time.Time
	pool   *pool
	tasks  sync.WaitGroup // everything that runs beside the callers

	learning sync.Mutex // one experiment at a time
	known    atomic.Pointer[abilities]
	naming   storagedrivers.NameLocks // of names that are replaced, or that the host does not refuse
	swept    atomic.Bool
	told     atomic.Bool // when to sweep: it does not by itself
}

// New returns a driver, which connects at its first use.
func New(config Config, log *slog.Logger) (*Driver, error) {
	dialer, err := config.complete()
	if err != nil {
		return nil, err
	}
	d := &Driver{config: config, log: log, now: time.Now} //nolint:forbidigo // the clock's one default
	d.pool = newPool(dialer, &d.tasks)
	return d, nil
}

// path gives the path of a key, or of a folder that ends at a slash. It begins with the
// root or "./", so that no host takes a tilde for somebody's home.
func (d *Driver) path(key string) string { return strings.TrimSuffix(d.config.Root, "/") + "/" + key }

// Check finds or makes the root, and the first time finds out what the host can. It
// passes where nothing may be written.
func (d *Driver) Check(ctx context.Context) error {
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
		if _, err = d.learn(ctx, c, d.config.Root); err != nil && !unavailable(err) {
			d.log.Warn("nothing can be written to the root", "error", err)
			return nil
		}
		return err
	})
	if err == nil && !d.told.Load() && !d.swept.Swap(true) {
		d.tasks.Go(d.sweepFirst)
	}
	return err
}

// Features are what was found out so far.
func (d *Driver) Features() storagedrivers.Features {
	f := storagedrivers.Features{Seek: true}
	if a := d.known.Load(); a != nil {
		if a.create == linked || a.create == claimed {
			f.Create = storagedrivers.Atomic
		}
		if a.replace && a.handles >= steady {
			f.Replace = storagedrivers.Atomic
		}
	}
	return f
}

// Close closes the connections and waits for whatever used them.
func (d *Driver) Close() error {
	d.pool.cancel()
	d.tasks.Wait()
	return nil
}

// Stat describes the file.
func (d *Driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	return do(ctx, d.pool, func(c *conn) (storagedrivers.Info, error) { return d.find(c, key) })
}

func (d *Driver) find(c *conn, key string) (storagedrivers.Info, error) {
	stat, err := c.Stat(d.path(key))
	switch {
	case failed(err) && d.belowFile(c, key):
		return storagedrivers.Info{}, notAnObject(key)
	case err != nil:
		return storagedrivers.Info{}, err
	case !stat.Mode().IsRegular():
		return storagedrivers.Info{}, notAnObject(key)
	}
	return describe(key, stat), nil
}

// belowFile tells that a part of the key's path is a file, for which some hosts have no
// better word than failure.
func (d *Driver) belowFile(c *conn, key string) bool {
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

// Delete removes the file. Folders stay: somebody may be about to write into them.
func (d *Driver) Delete(ctx context.Context, key string) error {
	return run(ctx, d.pool, func(c *conn) error {
		if _, err := d.find(c, key); err != nil { // Remove would take an empty folder, too
			return err
		}
		return c.Remove(d.path(key))
	})
}

func describe(key string, stat fs.FileInfo) storagedrivers.Info {
	return storagedrivers.Info{
		Key: key, Size: stat.Size(), ModTime: stat.ModTime(), ContentType: storagedrivers.ContentType(key),
	}
}

// Interface guards
var (
	_ storagedrivers.Driver  = (*Driver)(nil)
	_ storagedrivers.Sweeper = (*Driver)(nil)
)
