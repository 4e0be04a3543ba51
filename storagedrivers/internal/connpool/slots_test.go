package connpool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/connpool"
)

var errRefused = fmt.Errorf("%w: too many connections", storagedrivers.ErrUnavailable)

// limited returns a pool of a host that allows only so many connections.
func (h *host) limited(size int, most int64, lowered func(int)) *connpool.Pool[*conn] {
	return connpool.New(connpool.Options[*conn]{
		Size: size,
		Open: func(context.Context) (*conn, error) {
			if h.open.Add(1) > most {
				h.open.Add(-1)
				return nil, errRefused
			}
			h.opened.Add(1)
			return &conn{}, nil
		},
		Refused: func(err error) bool { return errors.Is(err, errRefused) },
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

// TestHostIsDead: a host that cannot be reached has no limit. All users fail with its error at the
// same time, and none waits for the others.
func TestHostIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, silence = 8, 10 * time.Second
		p := connpool.New(connpool.Options[*conn]{
			Size: size,
			Open: func(ctx context.Context) (*conn, error) {
				time.Sleep(silence)
				return nil, storagedrivers.ErrUnavailable
			},
			Refused: func(err error) bool { return errors.Is(err, errRefused) },
			Lowered: func(limit int) { t.Errorf("lowered to %d", limit) },
		})
		defer p.Close()
		start := time.Now()
		var wg sync.WaitGroup
		for range size {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 3*silence)
				defer cancel()
				_, err := p.Get(ctx)
				if !errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, storagedrivers.ErrBusy) {
					t.Errorf("error %v, want %v", err, storagedrivers.ErrUnavailable)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took != silence {
			t.Errorf("took %s, want %s", took, silence)
		}
	})
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
