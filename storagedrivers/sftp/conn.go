package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// connection is one SSH connection, for any number of operations at once.
type connection struct {
	*pkgsftp.Client // once ready

	shell *ssh.Client
	err   error         // of dialling, once ready
	ready chan struct{} // closed when it was dialled or could not be
	users int           // guarded by the pool
	dead  atomic.Bool   // it will serve nobody any more
	quiet atomic.Bool   // it is dead because the host did not answer
	heard atomic.Int64  // how many bytes the file server has said
}

// drop closes the connection. Who waits for an answer gets an error.
func (c *connection) drop() {
	c.dead.Store(true)
	_ = c.shell.Close()
}

// watches are how often in the time that a host may keep silent it is looked after.
const watches = 8

// watch asks the host for a sign of life often enough to find a dead one within silence,
// and ends when the connection does. It asks the file server, since SSH lives on where that
// hangs; whatever else it says meanwhile is as good.
func (c *connection) watch(silence time.Duration) {
	ended, asking := make(chan struct{}), make(chan struct{}, 1)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer close(ended)
		_ = c.Wait() // it tells how the connection ended, which whoever used it knows
	})
	tick := time.NewTicker(max(silence/watches, time.Millisecond))
	defer tick.Stop()
	heard, quiet := c.heard.Load(), 0
	for alive := true; alive; {
		select {
		case <-ended:
			alive = false
		case <-tick.C:
			if now := c.heard.Load(); now != heard {
				heard, quiet = now, 0
			} else {
				quiet++
			}
			if quiet == watches-1 {
				alive = false
				c.quiet.Store(true)
			}
			select {
			case asking <- struct{}{}:
				tasks.Go(func() {
					_, _ = c.Getwd() // any answer will do
					<-asking
				})
			default: // it was asked and has not answered
			}
		}
	}
	c.drop()
	_ = c.Client.Close() // it is closed already
	tasks.Wait()
}

// pool keeps up to max connections, which it dials when they are needed.
type pool struct {
	dialer *dialer
	tasks  *sync.WaitGroup
	ctx    context.Context //nolint:containedctx // it ends with the pool
	cancel context.CancelFunc

	mu          sync.Mutex
	connections []*connection
	limit       int // what the host lets us have
}

func newPool(d *dialer, tasks *sync.WaitGroup) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	return &pool{dialer: d, tasks: tasks, ctx: ctx, cancel: cancel}
}

// acquire gives the connection that has the fewest users, or a new one where all have
// some. The caller must release it.
func (p *pool) acquire(ctx context.Context) (*connection, error) {
	c := p.pick(true)
	for {
		err := p.wait(ctx, c)
		if err == nil {
			return c, nil
		}
		// A host that does not want so many connections may have let us have others, but not
		// one that is silent.
		if ctx.Err() != nil || network.Silent(err) {
			return nil, err
		}
		if c = p.pick(false); c == nil {
			return nil, err
		}
	}
}

// wait waits until c is ready. It releases one that is none.
func (p *pool) wait(ctx context.Context, c *connection) (err error) {
	select {
	case <-c.ready:
		err = mapError(c.err)
	case <-ctx.Done():
		err = ended(ctx)
	}
	if err != nil {
		p.release(c)
	}
	return err
}

// pick counts a user of the connection that suits best. If it may not dial there may be
// none.
func (p *pool) pick(dial bool) (c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections = slices.DeleteFunc(p.connections, func(c *connection) bool { return c.dead.Load() })
	if len(p.connections) == 0 {
		p.limit = p.dialer.config.Connections
	} else {
		c = slices.MinFunc(p.connections, func(a, b *connection) int { return a.users - b.users })
	}
	if dial && (c == nil || c.users > 0 && len(p.connections) < p.limit) {
		c = &connection{ready: make(chan struct{})}
		p.connections = append(p.connections, c)
		p.tasks.Go(func() { p.open(c) })
	}
	if c != nil {
		c.users++
	}
	return c
}

// open dials c and stays with it until it has ended.
func (p *pool) open(c *connection) {
	c.shell, c.Client, c.err = p.dialer.dial(p.ctx, &c.heard)
	if c.err != nil {
		p.mu.Lock()
		c.dead.Store(true)
		p.limit = max(1, len(p.connections)-1)
		p.mu.Unlock()
		close(c.ready)
		return
	}
	stop := context.AfterFunc(p.ctx, c.drop)
	defer stop()
	close(c.ready)
	c.watch(p.dialer.config.Timeout)
}

// share counts one more user of c.
func (p *pool) share(c *connection) {
	p.mu.Lock()
	c.users++
	p.mu.Unlock()
}

func (p *pool) release(c *connection) {
	p.mu.Lock()
	c.users--
	p.mu.Unlock()
}

// do calls f with a connection and gives what it answers, with the contract's errors. When ctx ends before f does, do
// returns and f goes on by itself, until the host answers or the connection is given up;
// f must not depend on what its caller may change then. What nobody waits for any more is
// closed, if it can be.
func do[T any](ctx context.Context, p *pool, f func(*connection) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, ended(ctx)
	}
	c, err := p.acquire(ctx)
	if err != nil {
		return none, err
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer)
	p.tasks.Go(func() {
		value, err := f(c)
		p.release(c)
		if errors.Is(err, pkgsftp.ErrSSHFxConnectionLost) || ctx.Err() == nil && unavailable(err) {
			c.drop() // so that nobody else comes to it
		}
		if c.quiet.Load() && unavailable(err) {
			err = fmt.Errorf("%w: %w", errSilent, err)
		}
		select {
		case answers <- answer{value, mapError(err)}:
		case <-ctx.Done():
			if closer, ok := any(value).(io.Closer); ok && err == nil {
				_ = closer.Close() // nobody is there to be told
			}
		}
	})
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return none, ended(ctx)
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, ended(ctx)
	}
}

// run is do for what gives nothing but an error.
func run(ctx context.Context, p *pool, f func(*connection) error) error {
	_, err := do(ctx, p, func(c *connection) (struct{}, error) { return struct{}{}, f(c) })
	return err
}
