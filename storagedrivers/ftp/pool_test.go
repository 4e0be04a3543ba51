package ftp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// poolHost opens connections and records their states.
type poolHost struct {
	opened, open, asked atomic.Int64
	down                atomic.Bool // connections are dead, and none can be made
}

var errDown = errors.New("poolHost down")

func (h *poolHost) pool(size int) *pool {
	p := newPool(size)
	p.open = func(context.Context) (*conn, error) {
		if h.down.Load() {
			return nil, errDown
		}
		h.opened.Add(1)
		h.open.Add(1)
		return &conn{}, nil
	}
	p.alive = func(context.Context, *conn) bool {
		h.asked.Add(1)
		return !h.down.Load()
	}
	p.end = func(c *conn) {
		if c.broken {
			panic("closed twice")
		}
		c.broken = true
		h.open.Add(-1)
	}
	return p
}

func lent(t *testing.T, p *pool) *conn {
	t.Helper()
	c, err := p.get(t.Context())
	if err != nil {
		t.Fatalf("getting a connection: %v", err)
	}
	return c
}

func (h *poolHost) has(t *testing.T, opened, open, asked int64) {
	t.Helper()
	if h.opened.Load() != opened || h.open.Load() != open || h.asked.Load() != asked {
		t.Errorf("%d were opened, %d are open, %d were asked, want %d, %d, %d",
			h.opened.Load(), h.open.Load(), h.asked.Load(), opened, open, asked)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(2)
		defer p.close()
		first := lent(t, p)
		second := lent(t, p)
		p.put(second)
		p.put(first)
		if lent(t, p) != first {
			t.Error("not the connection that was used last")
		}
		p.put(first)
		h.has(t, 2, 2, 0)

		time.Sleep(10 * time.Second)
		p.put(lent(t, p))
		h.has(t, 2, 2, 1)

		p.discard(lent(t, p))
		h.has(t, 2, 1, 1)
	})
}

func TestDeadConnectionsAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(3)
		defer p.close()
		conns := []*conn{lent(t, p), lent(t, p), lent(t, p)}
		for _, c := range conns {
			p.put(c)
		}
		time.Sleep(10 * time.Second)
		h.down.Store(true)
		for range 5 { // a failure takes no connection
			if _, err := p.get(t.Context()); !errors.Is(err, errDown) {
				t.Errorf("error %v, want %v", err, errDown)
			}
		}
		h.has(t, 3, 0, 1)
		h.down.Store(false)
		p.put(lent(t, p))
		h.has(t, 4, 1, 1)
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(2)
		defer p.close()
		first, second := lent(t, p), lent(t, p)
		p.put(first)
		time.Sleep(40 * time.Second)
		p.put(second)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.has(t, 2, 1, 0)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.has(t, 2, 0, 0)
		p.put(lent(t, p))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		h.has(t, 3, 0, 0)
	})
}

func TestWaitingForAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(1)
		c := lent(t, p)

		busy := errors.New("busy")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, busy)
		defer cancel()
		if _, err := p.get(ctx); !errors.Is(err, busy) {
			t.Errorf("error %v, want the cause %v", err, busy)
		}
		cancelled, stop := context.WithCancel(t.Context())
		stop()
		if _, err := p.get(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}

		got := make(chan *conn)
		go func() { got <- lent(t, p) }()
		time.Sleep(time.Second)
		p.put(c)
		if <-got != c {
			t.Error("another connection")
		}

		failed := make(chan error)
		go func() {
			_, err := p.get(t.Context())
			failed <- err
		}()
		synctest.Wait()
		p.close()
		if err := <-failed; !errors.Is(err, storagedrivers.ErrClosed) {
			t.Errorf("error %v, want %v", err, storagedrivers.ErrClosed)
		}
		p.put(c)
		p.close()
		h.has(t, 1, 0, 0)
		if _, err := p.get(t.Context()); !errors.Is(err, storagedrivers.ErrClosed) {
			t.Errorf("error %v, want %v", err, storagedrivers.ErrClosed)
		}
	})
}

func TestNeverMoreThanItsSize(t *testing.T) {
	t.Parallel()
	const size, users, rounds = 4, 16, 200
	h := &poolHost{}
	p := h.pool(size)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			for round := range rounds {
				c, err := p.get(t.Context())
				if err != nil {
					t.Errorf("getting a connection: %v", err)
					return
				}
				if c.broken || h.open.Load() > size {
					t.Errorf("closed %t, %d are open", c.broken, h.open.Load())
				}
				if (i+round)%7 == 0 {
					p.discard(c)
				} else {
					p.put(c)
				}
			}
		})
	}
	wg.Wait()
	p.close()
	if n := h.open.Load(); n != 0 {
		t.Errorf("%d are still open", n)
	}
}
