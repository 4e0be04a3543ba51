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

// limited returns a pool of a host that allows only so many connections.
func (h *host) limited(size int, most int64, lowered func(int)) *connpool.Pool[*conn] {
	return connpool.New(connpool.Options[*conn]{
		Size: size,
		Open: func(context.Context) (*conn, error) {
			if h.open.Add(1) > most {
				h.open.Add(-1)
				return nil, storagedrivers.ErrUnavailable
			}
			h.opened.Add(1)
			return &conn{}, nil
		},
		Alive:   func(context.Context, *conn) bool { return true },
		Close:   func(*conn) { h.open.Add(-1) },
		Lowered: lowered,
	})
}

// TestHostAllowsFewer: users wait for the connections that there are. After a minute the pool
// tries again.
func TestHostAllowsFewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		var lowest atomic.Int64
		lowest.Store(8)
		p := h.limited(8, 2, func(limit int) { lowest.Store(min(lowest.Load(), int64(limit))) })
		defer p.Close()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				c := get(t, p)
				time.Sleep(time.Second)
				p.Put(c)
			})
		}
		wg.Wait()
		if h.opened.Load() > 2 || lowest.Load() > 2 {
			t.Errorf("%d were opened, the limit was %d, want at most 2", h.opened.Load(), lowest.Load())
		}
		first := get(t, p)
		time.Sleep(2 * time.Minute)
		second := get(t, p)
		p.Put(first)
		p.Put(second)
	})
}

// TestHostAllowsNone: without any connection the failure is the host's.
func TestHostAllowsNone(t *testing.T) {
	t.Parallel()
	p := (&host{}).limited(4, 0, nil)
	defer p.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := p.Get(t.Context())
			if !errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, storagedrivers.ErrBusy) {
				t.Errorf("error %v, want %v", err, storagedrivers.ErrUnavailable)
			}
		})
	}
	wg.Wait()
}

// TestLower: a host may also refuse what a connection does.
func TestLower(t *testing.T) {
	t.Parallel()
	h := &host{}
	p := h.limited(4, 4, nil)
	defer p.Close()
	first, second, third := get(t, p), get(t, p), get(t, p)
	p.Put(third)
	if !p.Lower() {
		t.Error("not lowered although two are lent")
	}
	p.Put(second)
	h.has(t, 3, 1, 0)
	if p.Lower() {
		t.Error("lowered with one connection")
	}
	if p.Lengthen(first) {
		p.Put(first)
	} else {
		t.Error("the only connection serves no long use")
	}
}

// TestLongUses: they leave some connections to the others.
func TestLongUses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for size, want := range map[int]int{1: 1, 2: 1, 3: 2, 5: 4, 6: 4, 8: 6} {
			h := &host{}
			p := h.pool(size)
			var long []*conn
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				c, err := p.GetLong(ctx)
				cancel()
				if err != nil {
					if !errors.Is(err, storagedrivers.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("error %v, want %v", err, storagedrivers.ErrBusy)
					}
					break
				}
				long = append(long, c)
			}
			if len(long) != want {
				t.Errorf("%d of %d connections serve long uses, want %d", len(long), size, want)
			}
			if size > 1 {
				c := get(t, p)
				if p.Lengthen(c) {
					t.Error("one more long use")
				}
				p.Put(long[0])
				if long = long[1:]; !p.Lengthen(c) {
					t.Error("no long use although one has ended")
				}
				long = append(long, c)
			}
			got := make(chan *conn)
			go func() {
				c, err := p.GetLong(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- c
			}()
			synctest.Wait()
			p.Discard(long[0])
			long[0] = <-got
			for _, c := range long {
				p.Put(c)
			}
			p.Close()
		}
	})
}
