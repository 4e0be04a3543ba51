package ftp

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
)

const (
	// aliveAfter is how long a connection may be idle before it is tested.
	aliveAfter = 5 * time.Second
	// idleTimeout is how long a connection may be idle before it is closed.
	idleTimeout = time.Minute
	// refusedFor is how long a connection that the server refused is not tried again.
	refusedFor = time.Minute
)

// pool is a bounded number of connections, each for one user at a time. Waiting owners are served
// in rotation. Every successful get must be followed by one put.
type pool struct {
	// connect opens a connection. ctx bounds only the opening. If it fails with a reply that is
	// ErrUnavailable while other connections are open, the server limits connections. A silent or
	// unreachable server has no such limit.
	connect func(ctx context.Context) (*conn, error)
	// alive reports whether an idle connection can still be used.
	alive func(ctx context.Context, c *conn) bool
	// end closes a connection.
	end func(c *conn)
	// onRefused is called when the server allows fewer connections than the pool.
	onRefused func(err error)
	now       func() time.Time

	inUse     *queue.Queue // for each connection in use
	downloads *queue.Queue // for those of getDownload; acquired before one of inUse
	most      int          // downloads of one owner

	mu     sync.Mutex
	users  int     // of connections, with those that are being opened
	idle   []*conn // the one that is idle for longest is first
	closed bool
}

// newPool returns a pool of at most size connections, without its functions.
func newPool(size int) *pool {
	n := downloads(size)
	return &pool{
		now:       time.Now, //nolint:forbidigo // the clock's one default
		inUse:     queue.New(queue.Options{Slots: size}),
		downloads: queue.New(queue.Options{Slots: n}),
		most:      (n + 1) / 2,
	}
}

// downloads returns how many of size connections may be used for downloads of unknown duration.
func downloads(size int) int {
	switch {
	case size < 2:
		return 1
	case size < 6:
		return size - 1
	}
	return size - 2
}

// get returns a connection, the most recently used one if any is idle. If all are in use it waits
// until ctx ends; the error is then its cause and storagedrivers.ErrBusy. After close the error is
// storagedrivers.ErrClosed.
func (p *pool) get(ctx context.Context) (*conn, error) {
	for {
		slot, err := acquire(ctx, p.inUse, 0)
		if err != nil {
			return nil, err
		}
		c, err := p.conn(ctx)
		if err == nil {
			c.slot = slot
			return c, nil
		}
		_, isReply := errors.AsType[*textproto.Error](err)
		if others := p.leave(); others == 0 || !isReply || !errors.Is(err, storagedrivers.ErrUnavailable) || ctx.Err() != nil {
			slot.Release()
			return nil, err
		}
		// The server allows no more connections: wait for one of the others. The slot stays taken,
		// so that the server is not asked again at once.
		p.onRefused(err)
		time.AfterFunc(refusedFor, slot.Release)
	}
}

// getDownload is get for a download whose duration is unknown, because its client may read slowly.
// Such downloads leave connections to other uses, and to other owners.
func (p *pool) getDownload(ctx context.Context) (*conn, error) {
	slot, err := acquire(ctx, p.downloads, p.most)
	if err != nil {
		return nil, err
	}
	c, err := p.get(ctx)
	if err != nil {
		slot.Release()
		return nil, err
	}
	c.download = slot
	return c, nil
}

// acquire waits for a slot of q, of which the owner of ctx gets at most the given number; 0 is no
// limit.
func acquire(ctx context.Context, q *queue.Queue, most int) (*queue.Slot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	slot, err := q.Acquire(ctx, queue.Request{Owner: storagedrivers.Owner(ctx), Most: most})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", storagedrivers.ErrBusy, err)
	}
	return slot, nil
}

// conn returns an idle connection that is alive, or a new one. It adds a user, also with an error.
func (p *pool) conn(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	p.users++
	if p.closed {
		p.mu.Unlock()
		return nil, storagedrivers.ErrClosed
	}
	var last *conn
	if n := len(p.idle); n > 0 {
		last, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if last != nil {
		last.expiry.Stop()
		if p.now().Sub(last.idleSince) < aliveAfter || p.alive(ctx, last) {
			return last, nil
		}
		// The others have been idle for longer and probably have the same fault.
		p.end(last)
		p.closeIdle(last.idleSince)
	}
	return p.connect(ctx)
}

// leave removes a user and returns how many are left.
func (p *pool) leave() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	return p.users
}

// put returns a connection to the pool, which closes it if it is broken.
func (p *pool) put(c *conn) {
	slot, download := c.slot, c.download
	c.slot, c.download = nil, nil
	p.mu.Lock()
	p.users--
	keep := !p.closed && !c.broken
	if keep {
		c.idleSince = p.now()
		p.idle = append(p.idle, c)
		c.expiry = time.AfterFunc(idleTimeout, func() { p.closeIdle(p.now().Add(-idleTimeout)) })
	}
	p.mu.Unlock()
	if !keep {
		p.end(c)
	}
	slot.Release()
	if download != nil {
		download.Release()
	}
}

// close closes the idle connections. Those in use are closed when they are returned.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.closeIdle(p.now())
}

// closeIdle closes the connections that have been idle since then or earlier.
func (p *pool) closeIdle(then time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && !p.idle[n].idleSince.After(then) {
		n++
	}
	old := p.idle[:n:n]
	p.idle = append([]*conn(nil), p.idle[n:]...)
	p.mu.Unlock()
	for _, c := range old {
		c.expiry.Stop()
		p.end(c)
	}
}
