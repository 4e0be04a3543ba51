// Package connpool keeps a bounded number of connections to one host: what is idle is
// looked at before it is used again, and closed when nobody wants it for a while.
package connpool

import (
	"context"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Options of a [Pool].
type Options[C any] struct {
	// Size is how many connections there are at most, used and idle ones together.
	Size int
	// Open makes a connection. ctx bounds the making, not the connection's life.
	Open func(ctx context.Context) (C, error)
	// Alive tells whether a connection that was idle can still be used.
	Alive func(ctx context.Context, c C) bool
	// Close ends a connection.
	Close func(c C)
	// AliveAfter is how long a connection may be idle before Alive is asked. 0 is 5 s.
	AliveAfter time.Duration
	// IdleTimeout is when an idle connection is closed. 0 is one minute.
	IdleTimeout time.Duration
}

const (
	defaultAliveAfter  = 5 * time.Second
	defaultIdleTimeout = time.Minute
)

// Pool lends connections, each to one user at a time. Every Get that succeeded is
// followed by one Put or one Discard.
type Pool[C any] struct {
	opts   Options[C]
	places chan struct{} // one token for each connection that is lent
	closed chan struct{}
	now    func() time.Time

	mu     sync.Mutex
	idle   []resting[C] // who rests longest is first
	reaper *time.Timer  // nil while nothing rests
}

// resting is a connection that nobody uses.
type resting[C any] struct {
	conn  C
	since time.Time
}

// New gives a pool without connections.
func New[C any](opts Options[C]) *Pool[C] {
	if opts.AliveAfter <= 0 {
		opts.AliveAfter = defaultAliveAfter
	}
	if opts.IdleTimeout <= 0 {
		opts.IdleTimeout = defaultIdleTimeout
	}
	return &Pool[C]{
		opts:   opts,
		places: make(chan struct{}, opts.Size),
		closed: make(chan struct{}),
		now:    time.Now, //nolint:forbidigo // the clock's one default
	}
}

// Get lends a connection, the one that was used last if one is idle. Where all are lent
// it waits, up to the end of ctx, which is told by its cause. A pool that was closed is
// storagedrivers.ErrClosed.
func (p *Pool[C]) Get(ctx context.Context) (C, error) {
	var none C
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	select {
	case <-p.closed:
		return none, storagedrivers.ErrClosed
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	conn, err := p.conn(ctx)
	if err != nil {
		<-p.places
	}
	return conn, err
}

// conn gives an idle connection that is alive, or a new one.
func (p *Pool[C]) conn(ctx context.Context) (C, error) {
	if p.isClosed() {
		var none C
		return none, storagedrivers.ErrClosed
	}
	if last, ok := p.pop(); ok {
		if p.now().Sub(last.since) < p.opts.AliveAfter || p.opts.Alive(ctx, last.conn) {
			return last.conn, nil
		}
		// The others rest longer: what ended this one will have ended them.
		p.opts.Close(last.conn)
		p.closeIdle(last.since)
	}
	return p.opts.Open(ctx)
}

func (p *Pool[C]) pop() (resting[C], bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return resting[C]{}, false
	}
	last := p.idle[n-1]
	p.idle[n-1] = resting[C]{}
	p.idle = p.idle[:n-1]
	return last, true
}

// Put takes back a connection that can be used again.
func (p *Pool[C]) Put(c C) {
	p.mu.Lock()
	open := !p.isClosed()
	if open {
		p.idle = append(p.idle, resting[C]{c, p.now()})
		if p.reaper == nil {
			p.reaper = time.AfterFunc(p.opts.IdleTimeout, p.reap)
		}
	}
	p.mu.Unlock()
	if !open {
		p.opts.Close(c)
	}
	<-p.places
}

// Discard takes back a connection that must not be used again, and closes it.
func (p *Pool[C]) Discard(c C) {
	p.opts.Close(c)
	<-p.places
}

// Close closes what is idle and lends nothing any more; what is lent is closed when it
// comes back.
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

// reap closes what has rested for too long, and comes back for the others.
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

// closeIdle closes what has rested since at least then.
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
