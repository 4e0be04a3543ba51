// Package connpool keeps a bounded number of connections to one host. Idle connections are
// tested before they are used again, and closed after a while.
//
// The host may allow fewer connections than the pool. The pool then makes do with those that it
// has, and tries again after a minute.
package connpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Options of a [Pool].
type Options[C comparable] struct {
	// Size is the greatest number of connections, lent and idle ones together.
	Size int
	// Open makes a connection. ctx bounds the making, not the connection's life.
	Open func(ctx context.Context) (C, error)
	// Refused, if set, reports whether an error of Open is the host's own answer. One that also
	// matches storagedrivers.ErrUnavailable while other connections are open is taken for a
	// limit of the host. A host that is silent or cannot be reached has no such limit.
	Refused func(err error) bool
	// Alive reports whether a connection that was idle can still be used.
	Alive func(ctx context.Context, c C) bool
	// Close ends a connection.
	Close func(c C)
	// Lowered, if set, is called when the host allows fewer connections than Size.
	Lowered func(limit int)
	// AliveAfter is how long a connection may be idle before Alive is called. 0 is 5 s.
	AliveAfter time.Duration
	// IdleTimeout is when an idle connection is closed. 0 is one minute.
	IdleTimeout time.Duration
}

const (
	defaultAliveAfter  = 5 * time.Second
	defaultIdleTimeout = time.Minute
)

// Pool lends connections, each to one user at a time. Every Get or GetLong that succeeded is
// followed by one Put or one Discard.
type Pool[C comparable] struct {
	opts   Options[C]
	closed chan struct{}
	now    func() time.Time

	mu     sync.Mutex
	slots  slots
	long   map[C]struct{} // the lent connections of GetLong and Lengthen
	idle   []resting[C]   // the one that rests longest is first
	reaper *time.Timer    // nil while nothing rests
}

// resting is an idle connection.
type resting[C comparable] struct {
	conn  C
	since time.Time
}

// New returns a pool without connections.
func New[C comparable](opts Options[C]) *Pool[C] {
	if opts.AliveAfter <= 0 {
		opts.AliveAfter = defaultAliveAfter
	}
	if opts.IdleTimeout <= 0 {
		opts.IdleTimeout = defaultIdleTimeout
	}
	return &Pool[C]{
		opts:   opts,
		closed: make(chan struct{}),
		now:    time.Now, //nolint:forbidigo // the clock's one default
		slots:  slots{size: opts.Size, limit: opts.Size},
		long:   map[C]struct{}{},
	}
}

// Get lends a connection, the most recently used one if any is idle. While all are lent it
// waits until ctx ends: the error is then its cause and storagedrivers.ErrBusy. A pool that was
// closed is storagedrivers.ErrClosed.
func (p *Pool[C]) Get(ctx context.Context) (C, error) { return p.get(ctx, false) }

// GetLong is Get for a use whose length others decide, such as a client that reads slowly. Some
// connections are kept from such uses.
func (p *Pool[C]) GetLong(ctx context.Context) (C, error) { return p.get(ctx, true) }

func (p *Pool[C]) get(ctx context.Context, long bool) (C, error) {
	var none C
	for {
		if err := p.take(ctx, long); err != nil {
			return none, err
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
		again := ctx.Err() == nil && p.refused(err) && p.Lower()
		p.mu.Lock()
		p.slots.back(long)
		p.mu.Unlock()
		if !again {
			return none, err
		}
	}
}

// refused reports whether the host said that it has no connection to spare.
func (p *Pool[C]) refused(err error) bool {
	return p.opts.Refused != nil && errors.Is(err, storagedrivers.ErrUnavailable) && p.opts.Refused(err)
}

// take waits for a slot.
func (p *Pool[C]) take(ctx context.Context, long bool) error {
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
func (p *Pool[C]) conn(ctx context.Context) (C, error) {
	last, ok := p.pop()
	if p.isClosed() {
		if ok {
			p.opts.Close(last.conn)
		}
		var none C
		return none, storagedrivers.ErrClosed
	}
	if ok {
		if p.now().Sub(last.since) < p.opts.AliveAfter || p.opts.Alive(ctx, last.conn) {
			return last.conn, nil
		}
		// The others rest longer: what ended this one will have ended them.
		p.opts.Close(last.conn)
		p.closeIdle(last.since)
	}
	return p.opts.Open(ctx)
}

// pop takes the connection that has rested for the shortest time. The user of a slot has a
// connection from here on: this one, or the one that he opens next.
func (p *Pool[C]) pop() (resting[C], bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots.held++
	n := len(p.idle)
	if n == 0 {
		return resting[C]{}, false
	}
	last := p.idle[n-1]
	p.idle[n-1] = resting[C]{}
	p.idle = p.idle[:n-1]
	return last, true
}

// Lengthen makes a connection of Get one of GetLong. It reports whether there was room for one
// more.
func (p *Pool[C]) Lengthen(c C) bool {
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

// Several reports whether there may be more than one connection.
func (p *Pool[C]) Several() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots.limit > 1
}

// Lower is called when the host refused something because there are too many connections. It
// takes one less than are lent for the limit, for a minute, and closes the idle ones. It reports
// false if there is no other connection to blame.
func (p *Pool[C]) Lower() bool {
	p.mu.Lock()
	lowered := p.slots.lower(p.now())
	limit := p.slots.limit
	p.mu.Unlock()
	if !lowered {
		return false
	}
	p.closeIdle(p.now())
	if p.opts.Lowered != nil {
		p.opts.Lowered(limit)
	}
	return true
}

// Put takes back a connection that can be used again.
func (p *Pool[C]) Put(c C) {
	if !p.rest(c) {
		p.Discard(c)
	}
}

// rest keeps a connection for the next user, unless the host allows fewer by now.
func (p *Pool[C]) rest(c C) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() || p.slots.held+len(p.idle) > p.slots.limit {
		return false
	}
	p.idle = append(p.idle, resting[C]{c, p.now()})
	if p.reaper == nil {
		p.reaper = time.AfterFunc(p.opts.IdleTimeout, p.reap)
	}
	p.slots.back(p.forget(c))
	return true
}

// Discard takes back a connection that must not be used again, and closes it.
func (p *Pool[C]) Discard(c C) {
	p.opts.Close(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots.back(p.forget(c))
}

// forget removes c from the long uses and reports whether it was one. The caller holds the mutex.
func (p *Pool[C]) forget(c C) bool {
	_, long := p.long[c]
	delete(p.long, c)
	return long
}

// Close closes the idle connections and lends none any more. Lent ones are closed when they come
// back.
func (p *Pool[C]) Close() {
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

func (p *Pool[C]) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}

// reap closes the connections that have rested for too long, and comes back for the others.
func (p *Pool[C]) reap() {
	p.closeIdle(p.now().Add(-p.opts.IdleTimeout))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaper == nil { // closed meanwhile
		return
	}
	if len(p.idle) == 0 {
		p.reaper = nil
		return
	}
	p.reaper.Reset(p.idle[0].since.Add(p.opts.IdleTimeout).Sub(p.now()))
}

// closeIdle closes the connections that have rested since at least then.
func (p *Pool[C]) closeIdle(then time.Time) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && !p.idle[n].since.After(then) {
		n++
	}
	old := p.idle[:n:n]
	p.idle = append([]resting[C](nil), p.idle[n:]...)
	p.mu.Unlock()
	for _, r := range old {
		p.opts.Close(r.conn)
	}
}
