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
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
	"github.com/caddymedia/media/storagedrivers/locks"
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
	removed     *lru.Cache[string, time.Time] // by path
	keys        locks.Names
	features    atomic.Pointer[storagedrivers.Features] // nil until they are found out
	manualSweep atomic.Bool                             // Sweep was called: the driver begins none by itself
	swept       atomic.Bool                             // after the first check
	pasv        atomic.Bool                             // EPSV leads nowhere
	memory      *semaphore.Weighted                     // for objects that were read whole

	ctx    context.Context //nolint:containedctx // it ends with the driver
	cancel context.CancelFunc
	tasks  sync.WaitGroup
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
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.pool = newPool(config.Connections)
	d.pool.connect, d.pool.alive, d.pool.end = d.connect, alive, closeConn
	d.pool.onReduced = func(limit int) {
		log.Warn("the server allows fewer connections", "connections", config.Connections, "allowed", limit)
	}
	return d, nil
}

var errNoConnection = fmt.Errorf("%w: got no connection in time: %w", storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded)

// use calls f with a connection of get, one of the pool's methods. If the server refuses because of
// too many connections, including data connections, it calls f again with fewer. f reports whether
// it keeps the connection, which it then returns to the pool.
func (d *driver) use(
	ctx context.Context, get func(context.Context) (*conn, error), f func(c *conn) (kept bool, err error),
) error {
	for {
		wait, cancel := context.WithTimeoutCause(ctx, d.config.timeout(), errNoConnection)
		c, err := get(wait)
		cancel()
		if err != nil {
			return operationError(ctx, err)
		}
		kept, err := f(c)
		if kept {
			return err
		}
		again := isTooManyConnections(err) && ctx.Err() == nil && d.pool.reduceLimit()
		c.broken = c.broken || again // so that the pool closes it
		d.pool.put(c)
		if !again {
			return err
		}
	}
}

// withConn calls f with a connection; see [driver.use].
func (d *driver) withConn(ctx context.Context, f func(c *conn) error) error {
	return d.use(ctx, d.pool.get, func(c *conn) (bool, error) { return false, f(c) })
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
func (d *driver) Delete(ctx context.Context, key string) error {
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

// Check connects, logs in and finds or creates the root. The first Check tests how the server
// renames. If it does not rename over files, objects that were moved aside are restored.
func (d *driver) Check(ctx context.Context) error {
	err := d.withConn(ctx, func(c *conn) error {
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
	if err == nil && d.Features().Replace != storagedrivers.Atomic && !d.swept.Swap(true) {
		d.tasks.Go(d.sweepFirst)
	}
	return err
}

// Features returns the guarantees of the driver, which are few until Check has tested the server.
func (d *driver) Features() storagedrivers.Features {
	if found := d.features.Load(); found != nil {
		return *found
	}
	return storagedrivers.Features{}
}

// Close closes the connections and waits for the first sweep.
func (d *driver) Close() error {
	d.cancel()
	d.pool.close()
	d.tasks.Wait()
	d.kept.Close()
	return nil
}

// Interface guards
var (
	_ storagedrivers.Driver  = (*driver)(nil)
	_ storagedrivers.Sweeper = (*driver)(nil)
)

// probe tests whether the server renames over an existing file, as most do, and warns if locks do
// not work. It does nothing if the root is read-only.
//
// A server that refuses to rename over a file still does not create names atomically: proftpd with
// AllowOverwrite off first checks and then renames, so two renames at the same moment may both
// succeed.
func (d *driver) probe(ctx context.Context, c *conn) error {
	root := path.Join("/", c.base)
	from, onto, lock := tempName(root), tempName(root), newName(root, lockPrefix)
	err := c.run(ctx, func() error {
		features, err := c.probeRename(from, onto)
		if err == nil {
			features.ListTimes = c.hasFacts()
			d.features.Store(&features)
		}
		if err == nil && *d.config.Lock {
			err = d.probeLock(ctx, c, lock)
		}
		if isRefusal(err) {
			d.log.DebugContext(ctx, "testing the server", "error", err)
			return nil
		}
		return err
	})
	cleaned := d.cleanUp(ctx, c, func() error {
		err := errors.Join(ignoreRefusal(c.remove(from)), ignoreRefusal(c.remove(onto)))
		if *d.config.Lock {
			err = errors.Join(err, ignoreRefusal(c.removeFolder(lock)))
		}
		return err
	})
	if err == nil {
		err = cleaned
	}
	return err
}

// probeRename returns the features of a server, and leaves one of two temporary files or both.
func (c *conn) probeRename(from, onto string) (f storagedrivers.Features, err error) {
	for _, name := range []string{from, onto} {
		if err := c.store(name, strings.NewReader("probe")); err != nil {
			return f, err
		}
	}
	if f.Dated, err = c.probeTime(from); err != nil {
		return f, err
	}
	if err := c.rename(from, onto); err != nil {
		return f, ignoreRefusal(err)
	}
	if _, err = c.stat(from); errors.Is(err, fs.ErrNotExist) {
		f.Replace, err = storagedrivers.Atomic, nil
	}
	return f, err
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

// probeLock creates a lock folder, and warns if it can be created again.
func (d *driver) probeLock(ctx context.Context, c *conn, lock string) error {
	if err := c.makeFolder(lock); err != nil {
		return err
	}
	err := c.makeFolder(lock)
	if err == nil {
		d.log.WarnContext(ctx, "the server creates a folder that exists, so that lock folders do not work: "+
			"let only one process write there")
	}
	return ignoreRefusal(err)
}
