package ftp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

const (
	// aliveAfter is how long a connection may be idle before it is tested.
	aliveAfter = 5 * time.Second
	// idleTimeout is how long a connection may be idle before it is closed.
	idleTimeout = time.Minute
)

// pool lends a bounded number of connections, each to one user at a time. Every successful get or
// getLong must be followed by one put or one discard.
//
// The server may allow fewer connections than the pool. Then the pool uses those that it has, and
// tries more after a minute.
type pool struct {
	// open opens a connection. ctx bounds only the opening. If it fails with a reply that is
	// ErrUnavailable while other connections are open, the server limits connections. A silent or
	// unreachable server has no such limit.
	open func(ctx context.Context) (*conn, error)
	// alive reports whether an idle connection can still be used.
	alive func(ctx context.Context, c *conn) bool
	// end closes a connection.
	end func(c *conn)
	// lowered is called when the server allows fewer connections than size.
	lowered func(limit int)

	closed chan struct{}
	now    func() time.Time

	mu     sync.Mutex
	slots  slots
	long   map[*conn]struct{} // the lent connections of getLong and lengthen
	idle   []resting          // the one that rests longest is first
	reaper *time.Timer        // nil while nothing rests
}

// resting is an idle connection.
type resting struct {
	conn  *conn
	since time.Time
}

// newPool returns a pool of at most size connections, without its functions.
func newPool(size int) *pool {
	return &pool{
		closed: make(chan struct{}),
		now:    time.Now, //nolint:forbidigo // the clock's one default
		slots:  slots{size: size, limit: size},
		long:   map[*conn]struct{}{},
	}
}

// get lends a connection, the most recently used one if any is idle. If all are lent it waits until
// ctx ends; the error is then its cause and storagedrivers.ErrBusy. After close the error is
// storagedrivers.ErrClosed.
func (p *pool) get(ctx context.Context) (*conn, error) { return p.lend(ctx, false) }

// getLong is get for a use of unknown duration, such as a client that reads slowly. Some
// connections are reserved for other uses.
func (p *pool) getLong(ctx context.Context) (*conn, error) { return p.lend(ctx, true) }

func (p *pool) lend(ctx context.Context, long bool) (*conn, error) {
	for {
		if err := p.take(ctx, long); err != nil {
			return nil, err
		}
		c, err := p.conn(ctx)
		if err == nil {
			p.mu.Lock()
			if long {
				p.long[c] = struct{}{}
			}
			p.mu.Unlock()
			return c, nil
		}
		again := ctx.Err() == nil && errors.Is(err, storagedrivers.ErrUnavailable) && replied(err) && p.lower()
		p.mu.Lock()
		p.slots.back(long)
		p.mu.Unlock()
		if !again {
			return nil, err
		}
	}
}

// take waits for a slot.
func (p *pool) take(ctx context.Context, long bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	if p.isClosed() {
		p.mu.Unlock()
		return storagedrivers.ErrClosed
	}
	p.slots.restore(p.now(), len(p.idle))
	granted := p.slots.wait(long)
	p.mu.Unlock()
	var err error
	select {
	case <-granted:
		return nil
	case <-p.closed:
		err = storagedrivers.ErrClosed
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", storagedrivers.ErrBusy, context.Cause(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.slots.forget(granted) {
		p.slots.leave(long) // it was granted at the same moment
	}
	return err
}

// conn returns an idle connection that is alive, or a new one.
func (p *pool) conn(ctx context.Context) (*conn, error) {
	last, ok := p.pop()
	if p.isClosed() {
		if ok {
			p.end(last.conn)
		}
		return nil, storagedrivers.ErrClosed
	}
	if ok {
		if p.now().Sub(last.since) < aliveAfter || p.alive(ctx, last.conn) {
			return last.conn, nil
		}
		// The others have been idle for longer and probably have the same fault.
		p.end(last.conn)
		p.closeIdle(last.since)
	}
	return p.open(ctx)
}

// pop removes and returns the connection that was idle for the shortest time. From then on the
// holder of a slot has a connection: this one, or the one that it opens next.
func (p *pool) pop() (resting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots.held++
	n := len(p.idle)
	if n == 0 {
		return resting{}, false
	}
	last := p.idle[n-1]
	p.idle[n-1] = resting{}
	p.idle = p.idle[:n-1]
	return last, true
}

// lengthen makes a connection of get one of getLong. It reports whether another long use was
// allowed.
func (p *pool) lengthen(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.long[c]; ok {
		return true
	}
	if !p.slots.lengthen() {
		return false
	}
	p.long[c] = struct{}{}
	return true
}

// several reports whether there may be more than one connection.
func (p *pool) several() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.limit > 1
}

// lower is called when the server refuses something because of too many connections. For a minute
// it sets the limit to one less than the lent connections, and it closes the idle ones. It returns
// false if no other connection can be the reason.
func (p *pool) lower() bool {
	p.mu.Lock()
	lowered := p.slots.lower(p.now())
	limit := p.slots.limit
	p.mu.Unlock()
	if !lowered {
		return false
	}
	p.closeIdle(p.now())
	p.lowered(limit)
	return true
}

// put returns a usable connection to the pool.
func (p *pool) put(c *conn) {
	if !p.rest(c) {
		p.discard(c)
	}
}

// rest keeps a connection for the next user, unless the host allows fewer by now.
func (p *pool) rest(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() || p.slots.held+len(p.idle) > p.slots.limit {
		return false
	}
	p.idle = append(p.idle, resting{c, p.now()})
	if p.reaper == nil {
		p.reaper = time.AfterFunc(idleTimeout, p.reap)
	}
	p.slots.back(p.forget(c))
	return true
}

// discard closes a connection that must not be used again.
func (p *pool) discard(c *conn) {
	p.end(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots.back(p.forget(c))
}

// forget removes c from the long uses and reports whether it was one. The caller holds the mutex.
func (p *pool) forget(c *conn) bool {
	_, long := p.long[c]
	delete(p.long, c)
	return long
}

// close closes the idle connections and lends no more. Lent ones are closed when they are returned.
func (p *pool) close() {
	p.mu.Lock()
	if !p.isClosed() {
		close(p.closed)
	}
	if p.reaper != nil {
		p.reaper.Stop()
		p.reaper = nil
	}
	p.mu.Unlock()
	p.closeIdle(p.now())
}

func (p *pool) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// reap closes the connections that were idle for too long, and schedules itself for the others.
func (p *pool) reap() {
	p.closeIdle(p.now().Add(-idleTimeout))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaper == nil { // closed meanwhile
		return
	}
	if len(p.idle) == 0 {
		p.reaper = nil
		return
	}
	p.reaper.Reset(p.idle[0].since.Add(idleTimeout).Sub(p.now()))
}

// closeIdle closes the connections that have been idle since then or earlier.
func (p *pool) closeIdle(then time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && !p.idle[n].since.After(then) {
		n++
	}
	old := p.idle[:n:n]
	p.idle = append([]resting(nil), p.idle[n:]...)
	p.mu.Unlock()
	for _, r := range old {
		p.end(r.conn)
	}
}
