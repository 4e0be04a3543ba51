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

	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/internal/locks"
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
	keys        locks.Names
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
	if err := config.Complete(); err != nil {
		return nil, err
	}
	d := &Driver{
		config: config, log: log, memory: semaphore.NewWeighted(maxMemory),
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.pool = newPool(config.Connections)
	d.pool.connect, d.pool.alive, d.pool.end, d.pool.onReduced = d.connect, alive, closeConn, d.onReduced
	return d, nil
}

// onReduced is called when the server allows fewer connections than configured.
func (d *Driver) onReduced(limit int) {
	d.log.Warn("the server allows fewer connections", "connections", d.config.Connections, "allowed", limit)
}

// get returns a connection by one of the pool's methods.
func (d *Driver) get(ctx context.Context, get func(context.Context) (*conn, error)) (*conn, error) {
	wait, cancel := context.WithTimeoutCause(ctx, d.config.timeout(), errNoConnection)
	defer cancel()
	c, err := get(wait)
	if err != nil {
		return nil, operationError(ctx, err)
	}
	return c, nil
}

var errNoConnection = fmt.Errorf("%w: got no connection in time: %w", storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded)

// withConn calls f with a connection. If the server refuses because of too many connections,
// including data connections, it calls f again with fewer.
func (d *Driver) withConn(ctx context.Context, f func(c *conn) error) error {
	for {
		c, err := d.get(ctx, d.pool.get)
		if err != nil {
			return err
		}
		err = f(c)
		again := d.retryWithFewer(ctx, c, err)
		d.pool.put(c)
		if !again {
			return err
		}
	}
}

// retryWithFewer reports whether err is a refusal because of too many connections, while others are
// in use and may end. The connection is then closed when it is returned.
func (d *Driver) retryWithFewer(ctx context.Context, c *conn, err error) bool {
	if !isTooManyConnections(err) || ctx.Err() != nil || !d.pool.reduceLimit() {
		return false
	}
	c.broken = true
	return true
}

// do calls f with a connection that is watched meanwhile; see [conn.run].
func (d *Driver) do(ctx context.Context, f func(c *conn) error) error {
	return d.withConn(ctx, func(c *conn) error {
		return c.run(ctx, func() error { return f(c) })
	})
}

// cleanUp calls f, which undoes the effects of a failure, even after the end of ctx.
func (d *Driver) cleanUp(ctx context.Context, c *conn, f func() error) error {
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
func (d *Driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	var info storagedrivers.Info
	err := d.do(ctx, func(c *conn) error {
		e, err := c.stat(c.path(key))
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
	return d.do(ctx, func(c *conn) error {
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
func (d *Driver) Check(ctx context.Context) error {
	err := d.check(ctx)
	if err == nil && d.Features().Replace != storagedrivers.Atomic && !d.swept.Swap(true) {
		d.tasks.Go(d.sweepFirst)
	}
	return err
}

func (d *Driver) check(ctx context.Context) error {
	return d.withConn(ctx, func(c *conn) error {
		root := path.Join("/", c.base)
		err := c.run(ctx, func() error {
			if err := c.changeDir(root); !isRefusal(err) {
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

// probe tests whether the server renames over an existing file, as most do, and warns if locks do
// not work. It does nothing if the root is read-only.
//
// A server that refuses to rename over a file still does not create names atomically: proftpd with
// AllowOverwrite off first checks and then renames, so two renames at the same moment may both
// succeed.
func (d *Driver) probe(ctx context.Context, c *conn) error {
	root := path.Join("/", c.base)
	p := &probe{conn: c, from: tempName(root), onto: tempName(root)}
	if *d.config.Lock {
		p.lock = newName(root, lockPrefix)
	}
	err := c.run(ctx, func() error {
		features, err := p.run()
		if err == nil {
			d.features.Store(&features)
		}
		if err == nil && p.lock != "" {
			err = p.makeTwice()
		}
		if err == nil && p.shared {
			d.log.WarnContext(ctx, "the server makes a folder that exists once more, so that lock folders are in vain: "+
				"let only one process write there")
		}
		if isRefusal(err) {
			d.log.DebugContext(ctx, "cannot try out what renaming does", "error", err)
			return nil
		}
		return err
	})
	cleaned := d.cleanUp(ctx, c, p.remove)
	if err == nil {
		err = cleaned
	}
	return err
}

// probe contains the names of two temporary files and of a lock folder.
type probe struct {
	conn       *conn
	from, onto string
	lock       string // empty without locks
	shared     bool   // two processes can hold one lock
}

func (p *probe) run() (storagedrivers.Features, error) {
	for _, name := range []string{p.from, p.onto} {
		if err := p.conn.store(name, strings.NewReader("probe")); err != nil {
			return storagedrivers.Features{}, err
		}
	}
	if err := p.conn.rename(p.from, p.onto); isRefusal(err) {
		return storagedrivers.Features{}, nil
	} else if err != nil {
		return storagedrivers.Features{}, err
	}
	_, err := p.conn.stat(p.from)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Features{Replace: storagedrivers.Atomic}, nil
	}
	return storagedrivers.Features{}, err
}

// makeTwice creates the lock folder, and tests whether it can be created again.
func (p *probe) makeTwice() error {
	if err := p.conn.makeFolder(p.lock); err != nil {
		return err
	}
	err := p.conn.makeFolder(p.lock)
	p.shared = err == nil
	if isRefusal(err) {
		return nil
	}
	return err
}

// remove removes all names of the probe, whatever happened before.
func (p *probe) remove() error {
	for _, name := range []string{p.from, p.onto} {
		if err := p.conn.remove(name); err != nil && !isRefusal(err) {
			return err
		}
	}
	if p.lock == "" {
		return nil
	}
	if err := p.conn.removeFolder(p.lock); err != nil && !isRefusal(err) {
		return err
	}
	return nil
}
