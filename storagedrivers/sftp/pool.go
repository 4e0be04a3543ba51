package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// pool holds up to the configured number of connections, which it dials when they are needed.
type pool struct {
	dialer *dialer
	tasks  *sync.WaitGroup
	ctx    context.Context //nolint:containedctx // it ends with the pool
	cancel context.CancelFunc

	mu          sync.Mutex
	connections []*conn
	limit       int // the most connections that the host allows
}

// acquire returns the connection with the fewest users, or a new one if all are in use. The caller
// must release it.
func (p *pool) acquire(ctx context.Context) (*conn, error) {
	c := p.pick(true)
	for {
		err := p.wait(ctx, c)
		if err == nil {
			return c, nil
		}
		// A host that refuses so many connections may have accepted the others. A silent host has
		// not.
		if ctx.Err() != nil || network.Silent(err) {
			return nil, err
		}
		if c = p.pick(false); c == nil {
			return nil, err
		}
	}
}

// wait waits until c is ready. On an error it releases c.
func (p *pool) wait(ctx context.Context, c *conn) (err error) {
	select {
	case <-c.ready:
		err = mapError(c.err)
	case <-ctx.Done():
		err = contextError(ctx)
	}
	if err != nil {
		p.release(c)
	}
	return err
}

// pick adds a user to the connection with the fewest users, and returns it. If dial is false and
// there is no connection, it returns nil.
func (p *pool) pick(dial bool) (c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections = slices.DeleteFunc(p.connections, func(c *conn) bool { return c.dead.Load() })
	if len(p.connections) == 0 {
		p.limit = p.dialer.config.Connections
	} else {
		c = slices.MinFunc(p.connections, func(a, b *conn) int { return a.users - b.users })
	}
	if dial && (c == nil || c.users > 0 && len(p.connections) < p.limit) {
		c = &conn{ready: make(chan struct{})}
		p.connections = append(p.connections, c)
		p.tasks.Go(func() { p.open(c) })
	}
	if c != nil {
		c.users++
	}
	return c
}

// open dials c and watches it until it has ended.
func (p *pool) open(c *conn) {
	c.err = guard.Call(func() (err error) {
		c.shell, c.Client, err = p.dialer.dial(p.ctx, &c.received)
		return err
	})
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
	c.watch(p.dialer.config.timeout())
}

// share adds a user to c.
func (p *pool) share(c *conn) {
	p.mu.Lock()
	c.users++
	p.mu.Unlock()
}

func (p *pool) release(c *conn) {
	p.mu.Lock()
	c.users--
	p.mu.Unlock()
}

// do calls f with a connection and returns its result, with the contract's errors. If ctx ends
// before f returns, do returns, and f continues until the host replies or the connection is
// dropped. Therefore f must not use data that its caller may change then. A late result is closed
// if it is an io.Closer.
func do[T any](ctx context.Context, p *pool, f func(*conn) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, contextError(ctx)
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
		var value T
		err := guard.Call(func() (err error) {
			value, err = f(c)
			return err
		})
		p.release(c)
		lost := errors.Is(err, pkgsftp.ErrSSHFxConnectionLost)
		if lost || ctx.Err() == nil && unavailable(err) {
			c.drop() // so that it is not used again
		}
		if unavailable(err) && (c.silent.Load() || lost && c.timedOut()) {
			err = fmt.Errorf("%w: %w", errSilent, err)
		}
		select {
		case answers <- answer{value, mapError(err)}:
		case <-ctx.Done():
			if closer, ok := any(value).(io.Closer); ok && err == nil {
				_ = closer.Close() // the caller is gone
			}
		}
	})
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return none, contextError(ctx)
		}
		return a.value, a.err
	case <-ctx.Done():
		return none, contextError(ctx)
	}
}

// run is do for functions that return only an error.
func run(ctx context.Context, p *pool, f func(*conn) error) error {
	_, err := do(ctx, p, func(c *conn) (struct{}, error) { return struct{}{}, f(c) })
	return err
}

// conn is one SSH connection, for any number of concurrent operations.
type conn struct {
	*pkgsftp.Client // once ready

	shell    *ssh.Client
	err      error         // of dialling, once ready
	ready    chan struct{} // closed when it was dialled or could not be
	users    int           // guarded by the pool
	dead     atomic.Bool   // it serves no operation any more
	silent   atomic.Bool   // it is dead because the host did not answer
	received atomic.Int64  // the number of bytes from the file server
}

// drop closes the connection. Callers that wait for a reply get an error.
func (c *conn) drop() {
	c.dead.Store(true)
	_ = c.shell.Close()
}

// timedOut waits for the end of a lost connection, and reports whether it waited too long for a
// byte. On a busy machine that may come before watch finds the host silent.
func (c *conn) timedOut() bool { return errors.Is(c.shell.Wait(), os.ErrDeadlineExceeded) }

// watches is how often a connection is checked within the time that a host may stay silent.
const watches = 8

// watch sends requests often enough to detect a dead host within silence, and ends with the
// connection. It sends them to the file server, because SSH itself still works if the file server
// hangs. Any other data from the file server counts as a reply.
func (c *conn) watch(silence time.Duration) {
	ended, asking := make(chan struct{}), make(chan struct{}, 1)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		defer close(ended)
		_ = c.Wait() // its error is that of the operations
	})
	tick := time.NewTicker(max(silence/watches, time.Millisecond))
	defer tick.Stop()
	received, unanswered := c.received.Load(), 0
	for alive := true; alive; {
		select {
		case <-ended:
			alive = false
		case <-tick.C:
			if now := c.received.Load(); now != received {
				received, unanswered = now, 0
			} else {
				unanswered++
			}
			if unanswered == watches-1 {
				alive = false
				c.silent.Store(true)
			}
			select {
			case asking <- struct{}{}:
				tasks.Go(func() {
					_ = guard.Call(func() error { // any answer will do
						_, err := c.Getwd()
						return err
					})
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
