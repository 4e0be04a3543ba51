package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
)

const (
	// maxCleanup bounds the cleanup after a failure.
	maxCleanup = 5 * time.Second
	// maxMemory bounds the memory of objects that were read completely and wait for their readers.
	maxMemory = 64 << 20
	// maxFolders is the number of existing folders that the driver remembers.
	maxFolders = 10_000
)

// driver is the FTP driver; see [newDriver].
type driver struct {
	config      Config
	log         *slog.Logger
	now         func() time.Time
	pool        *pool
	folders     *lru.Cache[string, struct{}] // that exist
	kept        listing.Remote[entry]
	removed     *lru.Cache[string, time.Time]           // by path
	features    atomic.Pointer[storagedrivers.Features] // nil until they are found out
	listed      atomic.Bool                             // the listing of the root can be read
	manualSweep atomic.Bool                             // Sweep was called: listings remove nothing
	pasv        atomic.Bool                             // EPSV leads nowhere
	memory      *semaphore.Weighted                     // for objects that were read whole
}

// newDriver returns a driver, which connects at its first use.
func newDriver(config Config, log *slog.Logger) (*driver, error) {
	if err := config.Complete(); err != nil {
		return nil, err
	}
	d := &driver{
		config: config, log: log, memory: semaphore.NewWeighted(maxMemory), removed: modtime.NewRemoved(),
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
	d.kept.Least, d.kept.Most, d.kept.Now = listing.KeepFrom, listing.KeepRemote, d.now
	d.kept.Name = func(_ string, e entry) string { return e.name }
	var err error
	if d.folders, err = lru.New[string, struct{}](maxFolders); err != nil {
		return nil, err
	}
	d.pool = newPool(config.Connections)
	d.pool.connect, d.pool.alive, d.pool.end = d.connect, alive, closeConn
	d.pool.onRefused = func(err error) {
		log.Warn("the server allows fewer connections than configured", "connections", config.Connections, "error", err)
	}
	return d, nil
}

var errNoConnection = fmt.Errorf("%w: got no connection in time: %w", storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded)

// connection returns a connection of get, one of the pool's methods.
func (d *driver) connection(ctx context.Context, get func(context.Context) (*conn, error)) (*conn, error) {
	wait, cancel := context.WithTimeoutCause(ctx, d.config.timeout(), errNoConnection)
	defer cancel()
	c, err := get(wait)
	return c, operationError(ctx, err)
}

// withConn calls f with a connection.
func (d *driver) withConn(ctx context.Context, f func(c *conn) error) error {
	c, err := d.connection(ctx, d.pool.get)
	if err != nil {
		return err
	}
	defer d.pool.put(c)
	return f(c)
}

// do calls f with a connection that is watched meanwhile; see [conn.run].
func (d *driver) do(ctx context.Context, f func(c *conn) error) error {
	return d.withConn(ctx, func(c *conn) error {
		return c.run(ctx, func() error { return f(c) })
	})
}

// cleanUp calls f, which undoes the effects of a failure, even after the end of ctx.
func (d *driver) cleanUp(ctx context.Context, c *conn, f func() error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(d.config.timeout()/5, maxCleanup))
	defer cancel()
	return c.run(ctx, f)
}

// newInfo returns the Info of an object.
func newInfo(key string, e entry) storagedrivers.Info {
	return storagedrivers.Info{
		Key: key, Size: e.size, ModTime: e.modTime, ContentType: storagedrivers.ContentType(key),
	}
}

// Stat returns the Info of an object.
func (d *driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	var info storagedrivers.Info
	err := d.do(ctx, func(c *conn) error {
		e, err := c.stat(c.path(key))
		if err == nil {
			info = newInfo(key, e)
		}
		return err
	})
	return info, err
}

// Delete removes an object; a missing one is fs.ErrNotExist.
func (d *driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if opts.IfMatch != "" { // only Storage can compare
		return errors.ErrUnsupported
	}
	defer d.kept.Change(key)
	return d.do(ctx, func(c *conn) error {
		if d.Features().Dated {
			e, err := c.stat(c.path(key))
			if err != nil {
				return err
			}
			d.removed.Add(c.path(key), e.modTime)
		}
		err := c.remove(c.path(key))
		if !isRefusal(err) {
			return err
		}
		if _, looked := c.stat(c.path(key)); looked != nil {
			return looked
		}
		return refusalReason(err, fs.ErrPermission)
	})
}

// Rename renames a file.
func (d *driver) Rename(ctx context.Context, source storagedrivers.Info, to string) error {
	defer d.kept.Change(to)
	defer d.kept.Change(source.Key)
	return d.do(ctx, func(c *conn) error {
		from, dst := c.path(source.Key), c.path(to)
		e, err := c.stat(from)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && !newInfo(source.Key, e).Same(source):
			return storagedrivers.ErrChanged
		case err != nil:
			return err
		}
		if err := (&upload{conn: c, dst: dst}).isFree(); err != nil {
			return err
		}
		if err = d.ensureFolder(c, path.Dir(dst)); err == nil {
			d.removed.Add(from, e.modTime)
			err = c.rename(from, dst)
		}
		if isRefusal(err) {
			d.folders.Purge() // another client may have removed it
			err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
		return err
	})
}

// Check connects, logs in and finds or creates the root. The first Check tests whether the server
// sets times, and whether its listings can be read.
func (d *driver) Check(ctx context.Context) error {
	return d.withConn(ctx, func(c *conn) error {
		root := path.Join("/", c.base)
		err := c.run(ctx, func() error {
			if err := c.changeDir(root); !isRefusal(err) {
				return err
			}
			d.folders.Purge()
			return d.ensureFolder(c, root)
		})
		if err != nil {
			return storagedrivers.WithCause(fmt.Errorf("finding the root %q: %w", root, err), causeOfRoot(err))
		}
		if d.features.Load() != nil {
			return nil
		}
		return d.probe(ctx, c)
	})
}

// Features returns the guarantees of the driver. The protocol has no way to create a name only if
// it is free, and a reader of a replaced object may fail.
func (d *driver) Features() storagedrivers.Features {
	if found := d.features.Load(); found != nil {
		return *found
	}
	return storagedrivers.Features{EmptyFolders: true}
}

// Close closes the connections.
func (d *driver) Close() error {
	d.pool.close()
	d.kept.Close()
	return nil
}

// Interface guards
var (
	_ storagedrivers.Driver  = (*driver)(nil)
	_ storagedrivers.Sweeper = (*driver)(nil)
)

// probe tests whether listings can be read, and, unless the root is read-only, whether the server
// sets the times of files.
func (d *driver) probe(ctx context.Context, c *conn) error {
	temp := tempName(path.Join("/", c.base))
	err := c.run(ctx, func() error {
		stored := c.store(temp, strings.NewReader("probe"))
		if stored != nil && !isRefusal(stored) {
			return stored
		}
		if err := d.probeListing(c); err != nil {
			return err
		}
		err := stored
		if err == nil {
			features := storagedrivers.Features{ListTimes: c.hasFacts(), EmptyFolders: true}
			if features.Dated, err = c.probeTime(temp); err == nil {
				d.features.Store(&features)
			}
		}
		if isRefusal(err) {
			d.log.DebugContext(ctx, "testing the server", "error", err)
			return nil
		}
		return err
	})
	cleaned := d.cleanUp(ctx, c, func() error { return ignoreRefusal(c.remove(temp)) })
	if err == nil {
		err = cleaned
	}
	return err
}

// probeListing reads the listing of the root, once.
func (d *driver) probeListing(c *conn) error {
	if d.listed.Load() {
		return nil
	}
	if _, err := c.list(path.Join("/", c.base)); ignoreRefusal(err) != nil {
		return fmt.Errorf("listing the root: %w", err)
	}
	d.listed.Store(true)
	return nil
}

// probeTime sets an odd time for a file, and reports whether the file has it.
func (c *conn) probeTime(name string) (bool, error) {
	if !c.ftp.IsSetTimeSupported() {
		return false, nil
	}
	odd := time.Unix(1_000_000_001, 0)
	if err := c.checkPathReply(name, c.ftp.SetTime(name, odd)); err != nil {
		return false, ignoreRefusal(err)
	}
	e, err := c.stat(name)
	return e.modTime.Equal(odd), err
}
