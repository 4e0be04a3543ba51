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
	// lowerFor is how long a limit of the server is assumed to hold.
	lowerFor = time.Minute
)

// pool is a bounded number of connections, each for one user at a time. Waiting owners are served
// in rotation. Every successful get must be followed by one put.
//
// The server may allow fewer connections than the pool. Then the pool uses those that it has, and
// tries more after a minute.
type pool struct {
	// connect opens a connection. ctx bounds only the opening. If it fails with a reply that is
	// ErrUnavailable while other connections are open, the server limits connections. A silent or
	// unreachable server has no such limit.
	connect func(ctx context.Context) (*conn, error)
	// alive reports whether an idle connection can still be used.
	alive func(ctx context.Context, c *conn) bool
	// end closes a connection.
	end func(c *conn)
	// onReduced is called when the server allows fewer connections than size.
	onReduced func(limit int)
	now       func() time.Time

	size      int          // the configured limit
	inUse     *queue.Queue // for each connection in use
	downloads *queue.Queue // for those of getDownload; acquired before one of inUse

	mu     sync.Mutex
	limit  int       // the present limit
	until  time.Time // when the limit rises to size again
	open   int       // connections, with those that are being opened
	idle   []*conn   // of them; the one that is idle for longest is first
	closed bool
}

// newPool returns a pool of at most size connections, without its functions.
func newPool(size int) *pool {
	return &pool{
		now:       time.Now, //nolint:forbidigo // the clock's one default
		size:      size,
		limit:     size,
		inUse:     queue.New(queue.Options{Slots: size}),
		downloads: queue.New(queue.Options{Slots: downloads(size), Spare: true}),
	}
}

// downloads returns how many of limit connections may be used for downloads of unknown duration.
func downloads(limit int) int {
	switch {
	case limit < 2:
		return 1
	case limit < 6:
		return limit - 1
	}
	return limit - 2
}

// get returns a connection, the most recently used one if any is idle. If all are in use it waits
// until ctx ends; the error is then its cause and storagedrivers.ErrBusy. After close the error is
// storagedrivers.ErrClosed.
func (p *pool) get(ctx context.Context) (*conn, error) {
	for {
		p.restore()
		slot, err := acquire(ctx, p.inUse)
		if err != nil {
			return nil, err
		}
		c, err := p.conn(ctx)
		if err == nil {
			c.slot = slot
			return c, nil
		}
		_, isReply := errors.AsType[*textproto.Error](err)
		again := ctx.Err() == nil && errors.Is(err, storagedrivers.ErrUnavailable) && isReply && p.reduceLimit()
		slot.Release()
		if !again {
			return nil, err
		}
	}
}

// getDownload is get for a download whose duration is unknown, because its client may read slowly.
// Such downloads leave connections to other uses, and to other owners.
func (p *pool) getDownload(ctx context.Context) (*conn, error) {
	p.restore()
	slot, err := acquire(ctx, p.downloads)
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

// acquire waits for a slot of q.
func acquire(ctx context.Context, q *queue.Queue) (*queue.Slot, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	slot, err := q.Acquire(ctx, queue.Request{Owner: storagedrivers.Owner(ctx)})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", storagedrivers.ErrBusy, err)
	}
	return slot, nil
}

// conn returns an idle connection that is alive, or a new one.
func (p *pool) conn(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, storagedrivers.ErrClosed
	}
	var last *conn
	if n := len(p.idle); n > 0 {
		last, p.idle = p.idle[n-1], p.idle[:n-1]
	} else {
		p.open++
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
	c, err := p.connect(ctx)
	if err != nil {
		p.gone()
	}
	return c, err
}

// put returns a connection to the pool, which closes it if it is broken or one too many.
func (p *pool) put(c *conn) {
	slot, download := c.slot, c.download
	c.slot, c.download = nil, nil
	p.mu.Lock()
	keep := !p.closed && !c.broken && p.open <= p.limit
	if keep {
		c.idleSince = p.now()
		p.idle = append(p.idle, c)
		c.expiry = time.AfterFunc(idleTimeout, func() { p.closeIdle(p.now().Add(-idleTimeout)) })
	}
	p.mu.Unlock()
	if !keep {
		p.end(c)
		p.gone()
	}
	slot.Release()
	if download != nil {
		download.Release()
	}
}

// several reports whether there may be more than one connection.
func (p *pool) several() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit > 1
}

// reduceLimit is called when the server refuses something because of too many connections. For a
// minute it sets the limit to one less than the connections in use, and it closes the idle ones. It
// returns false if no other connection can be the reason.
func (p *pool) reduceLimit() bool {
	p.mu.Lock()
	busy := p.inUse.Busy()
	if busy < 2 {
		p.mu.Unlock()
		return false
	}
	p.resize(min(p.limit, busy-1))
	p.until = p.now().Add(lowerFor)
	limit := p.limit
	p.mu.Unlock()
	p.closeIdle(p.now())
	p.onReduced(limit)
	return true
}

// restore removes the limit of the server when its time is over, or when no connection is left.
func (p *pool) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit < p.size && (p.now().After(p.until) || p.open == 0) {
		p.resize(p.size)
	}
}

// resize sets the limit. The caller holds the mutex.
func (p *pool) resize(limit int) {
	p.limit = limit
	p.inUse.Resize(limit)
	p.downloads.Resize(downloads(limit))
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
		p.gone()
	}
}

// gone records that a connection has ended.
func (p *pool) gone() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
}
