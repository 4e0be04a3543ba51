package ftp

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers"
)

// maxCleanup bounds the cleanup after a failure.
const maxCleanup = 5 * time.Second

// Driver is the FTP driver; see [New].
type Driver struct {
	config      Config
	log         *slog.Logger
	now         func() time.Time
	pool        *pool
	folders     folders
	keys        storagedrivers.NameLocks
	features    atomic.Pointer[storagedrivers.Features] // nil until they are found out
	manualSweep atomic.Bool                             // Sweep was called: the driver begins none by itself
	swept       atomic.Bool                             // after the first check
	memory      *semaphore.Weighted                     // for objects that were read whole

	ctx    context.Context //nolint:containedctx // it ends with the driver
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// maxMemory bounds the memory of objects that were read completely and wait for their readers.
const maxMemory = 64 << 20

// New returns a driver, which connects at its first use.
func New(config Config, log *slog.Logger) (*Driver, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	d := &Driver{
		config: config, log: log, memory: semaphore.NewWeighted(maxMemory),
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.pool = newPool(config.Connections)
	d.pool.connect, d.pool.alive, d.pool.end, d.pool.lowered = d.connect, alive, hangUp, d.lowered
	return d, nil
}

// lowered is called when the server allows fewer connections than configured.
func (d *Driver) lowered(limit int) {
	d.log.Warn("the server allows fewer connections", "connections", d.config.Connections, "allowed", limit)
}

// get returns a connection by one of the pool's methods.
func (d *Driver) get(ctx context.Context, lend func(context.Context) (*conn, error)) (*conn, error) {
	wait, cancel := context.WithTimeoutCause(ctx, d.config.Timeout, errNoConnection)
	defer cancel()
	c, err := lend(wait)
	if err != nil {
		return nil, ended(ctx, err)
	}
	return c, nil
}

var errNoConnection = fmt.Errorf("%w: got no connection in time: %w", storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded)

// lend calls f with a connection. If the server refuses because of too many connections, including
// data connections, it calls f again with fewer.
func (d *Driver) lend(ctx context.Context, f func(c *conn) error) error {
	for {
		c, err := d.get(ctx, d.pool.get)
		if err != nil {
			return err
		}
		err = f(c)
		again := d.yields(ctx, c, err)
		d.pool.put(c)
		if !again {
			return err
		}
	}
}

// yields reports whether err is a refusal because of too many connections, while others are in use
// and may end. The connection is then closed when it is returned.
func (d *Driver) yields(ctx context.Context, c *conn, err error) bool {
	if !crowded(err) || ctx.Err() != nil || !d.pool.lower() {
		return false
	}
	c.broken = true
	return true
}

// with calls f with a connection that is watched meanwhile; see [conn.run].
func (d *Driver) with(ctx context.Context, f func(c *conn) error) error {
	return d.lend(ctx, func(c *conn) error {
		return c.run(ctx, func() error { return f(c) })
	})
}

// cleanUp calls f, which undoes the effects of a failure, even after the end of ctx.
func (d *Driver) cleanUp(ctx context.Context, c *conn, f func() error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(d.config.Timeout/5, maxCleanup))
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
func (d *Driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	var info storagedrivers.Info
	err := d.with(ctx, func(c *conn) error {
		e, err := c.look(c.path(key))
		info = newInfo(key, e)
		return err
	})
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return info, nil
}

// Delete removes an object; a missing one is fs.ErrNotExist.
func (d *Driver) Delete(ctx context.Context, key string) error {
	return d.with(ctx, func(c *conn) error {
		err := c.remove(c.path(key))
		if !refused(err) {
			return err
		}
		if _, looked := c.look(c.path(key)); looked != nil {
			return looked
		}
		return because(err, fs.ErrPermission)
	})
}

// Check connects, logs in and finds or creates the root. The first Check tests how the server
// renames. If it does not rename over files, objects that were moved aside are restored.
func (d *Driver) Check(ctx context.Context) error {
	err := d.check(ctx)
	if err == nil && d.Features().Replace != storagedrivers.Atomic && !d.swept.Swap(true) {
		d.tasks.Go(d.sweepFirst)
	}
	return err
}

func (d *Driver) check(ctx context.Context) error {
	return d.lend(ctx, func(c *conn) error {
		root := path.Join("/", c.base)
		err := c.run(ctx, func() error {
			if err := c.enter(root); !refused(err) {
				return err
			}
			d.folders.forget()
			return d.folders.ensure(c, root)
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

// Features returns the guarantees of the driver, which are few until Check has tested the server.
func (d *Driver) Features() storagedrivers.Features {
	if found := d.features.Load(); found != nil {
		return *found
	}
	return storagedrivers.Features{}
}

// Close closes the connections and waits for the first sweep.
func (d *Driver) Close() error {
	d.cancel()
	d.pool.close()
	d.tasks.Wait()
	return nil
}

// Interface guards
var (
	_ storagedrivers.Driver  = (*Driver)(nil)
	_ storagedrivers.Sweeper = (*Driver)(nil)
)
