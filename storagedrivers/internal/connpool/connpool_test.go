package connpool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/connpool"
)

// host makes connections and knows what became of them.
type host struct {
	opened, open, asked atomic.Int64
	down                atomic.Bool // connections are dead, and none can be made
}

type conn struct{ closed atomic.Bool }

var errDown = errors.New("host down")

func (h *host) pool(size int) *connpool.Pool[*conn] {
	return connpool.New(connpool.Options[*conn]{
		Size: size,
		Open: func(context.Context) (*conn, error) {
			if h.down.Load() {
				return nil, errDown
			}
			h.opened.Add(1)
			h.open.Add(1)
			return &conn{}, nil
		},
		Alive: func(context.Context, *conn) bool {
			h.asked.Add(1)
			return !h.down.Load()
		},
		Close: func(c *conn) {
			if c.closed.Swap(true) {
				panic("closed twice")
			}
			h.open.Add(-1)
		},
		AliveAfter:  5 * time.Second,
		IdleTimeout: time.Minute,
	})
}

func get(t *testing.T, p *connpool.Pool[*conn]) *conn {
	t.Helper()
	c, err := p.Get(t.Context())
	if err != nil {
		t.Fatalf("getting a connection: %v", err)
	}
	return c
}

func (h *host) has(t *testing.T, opened, open, asked int64) {
	t.Helper()
	if h.opened.Load() != opened || h.open.Load() != open || h.asked.Load() != asked {
		t.Errorf("%d were opened, %d are open, %d were asked, want %d, %d, %d",
			h.opened.Load(), h.open.Load(), h.asked.Load(), opened, open, asked)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		p := h.pool(2)
		defer p.Close()
		first := get(t, p)
		second := get(t, p)
		p.Put(second)
		p.Put(first)
		if get(t, p) != first {
			t.Error("not the connection that was used last")
		}
		p.Put(first)
		h.has(t, 2, 2, 0)

		time.Sleep(10 * time.Second)
		p.Put(get(t, p))
		h.has(t, 2, 2, 1)

		p.Discard(get(t, p))
		h.has(t, 2, 1, 1)
	})
}

func TestDeadConnectionsAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		p := h.pool(3)
		defer p.Close()
		conns := []*conn{get(t, p), get(t, p), get(t, p)}
		for _, c := range conns {
			p.Put(c)
		}
		time.Sleep(10 * time.Second)
		h.down.Store(true)
		for range 5 { // a failure takes no place
			if _, err := p.Get(t.Context()); !errors.Is(err, errDown) {
				t.Errorf("error %v, want %v", err, errDown)
			}
		}
		h.has(t, 3, 0, 1)
		h.down.Store(false)
		p.Put(get(t, p))
		h.has(t, 4, 1, 1)
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		p := h.pool(2)
		defer p.Close()
		first, second := get(t, p), get(t, p)
		p.Put(first)
		time.Sleep(40 * time.Second)
		p.Put(second)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.has(t, 2, 1, 0)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.has(t, 2, 0, 0)
		p.Put(get(t, p))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		h.has(t, 3, 0, 0)
	})
}

func TestWaitingForAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		p := h.pool(1)
		c := get(t, p)

		busy := errors.New("busy")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, busy)
		defer cancel()
		if _, err := p.Get(ctx); !errors.Is(err, busy) {
			t.Errorf("error %v, want the cause %v", err, busy)
		}
		cancelled, stop := context.WithCancel(t.Context())
		stop()
		if _, err := p.Get(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}

		got := make(chan *conn)
		go func() { got <- get(t, p) }()
		time.Sleep(time.Second)
		p.Put(c)
		if <-got != c {
			t.Error("another connection")
		}

		failed := make(chan error)
		go func() {
			_, err := p.Get(t.Context())
			failed <- err
		}()
		synctest.Wait()
		p.Close()
		if err := <-failed; !errors.Is(err, storagedrivers.ErrClosed) {
			t.Errorf("error %v, want %v", err, storagedrivers.ErrClosed)
		}
		p.Put(c)
		p.Close()
		h.has(t, 1, 0, 0)
		if _, err := p.Get(t.Context()); !errors.Is(err, storagedrivers.ErrClosed) {
			t.Errorf("error %v, want %v", err, storagedrivers.ErrClosed)
		}
	})
}

func TestNeverMoreThanItsSize(t *testing.T) {
	t.Parallel()
	const size, users, rounds = 4, 16, 200
	h := &host{}
	p := h.pool(size)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			for round := range rounds {
				c, err := p.Get(t.Context())
				if err != nil {
					t.Errorf("getting a connection: %v", err)
					return
				}
				if c.closed.Load() || h.open.Load() > size {
					t.Errorf("closed %t, %d are open", c.closed.Load(), h.open.Load())
				}
				if (i+round)%7 == 0 {
					p.Discard(c)
				} else {
					p.Put(c)
				}
			}
		})
	}
	wg.Wait()
	p.Close()
	if n := h.open.Load(); n != 0 {
		t.Errorf("%d are still open", n)
	}
}
