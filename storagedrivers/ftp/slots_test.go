package ftp

import (
	"context"
	"errors"
	"net/textproto"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
)

var errTooMany = mapError(&textproto.Error{Code: jftp.StatusNotAvailable, Msg: "too many connections"})

func noOne(int) {}

// limited returns a pool of a poolHost that allows no more than most connections.
func (h *poolHost) limited(size int, most int64, lowered func(int)) *pool {
	p := newPool(size)
	p.open = func(context.Context) (*conn, error) {
		if h.open.Add(1) > most {
			h.open.Add(-1)
			return nil, errTooMany
		}
		h.opened.Add(1)
		return &conn{}, nil
	}
	p.alive = func(context.Context, *conn) bool { return true }
	p.end = func(*conn) { h.open.Add(-1) }
	p.lowered = lowered
	return p
}

// TestHostAllowsFewer: users wait for the existing connections. After a minute the pool tries more.
func TestHostAllowsFewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		var lowest atomic.Int64
		lowest.Store(8)
		p := h.limited(8, 2, func(limit int) { lowest.Store(min(lowest.Load(), int64(limit))) })
		defer p.close()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				c := lent(t, p)
				time.Sleep(time.Second)
				p.put(c)
			})
		}
		wg.Wait()
		if h.opened.Load() > 2 || lowest.Load() > 2 {
			t.Errorf("%d were opened, the limit was %d, want at most 2", h.opened.Load(), lowest.Load())
		}
		first := lent(t, p)
		time.Sleep(2 * time.Minute)
		second := lent(t, p)
		p.put(first)
		p.put(second)
	})
}

// TestHostAllowsNone: without any connection, the error is that of the poolHost.
func TestHostAllowsNone(t *testing.T) {
	t.Parallel()
	p := (&poolHost{}).limited(4, 0, noOne)
	defer p.close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := p.get(t.Context())
			if !errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, storagedrivers.ErrBusy) {
				t.Errorf("error %v, want %v", err, storagedrivers.ErrUnavailable)
			}
		})
	}
	wg.Wait()
}

// TestHostIsDead: an unreachable poolHost has no limit. All users fail with its error at the same
// time, without waiting for each other.
func TestHostIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, silence = 8, 10 * time.Second
		p := newPool(size)
		p.open = func(context.Context) (*conn, error) {
			time.Sleep(silence)
			return nil, storagedrivers.ErrUnavailable
		}
		p.lowered = func(limit int) { t.Errorf("lowered to %d", limit) }
		defer p.close()
		start := time.Now()
		var wg sync.WaitGroup
		for range size {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 3*silence)
				defer cancel()
				_, err := p.get(ctx)
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

// TestLower: a poolHost may also refuse a command of an open connection.
func TestLower(t *testing.T) {
	t.Parallel()
	h := &poolHost{}
	p := h.limited(4, 4, noOne)
	defer p.close()
	first, second, third := lent(t, p), lent(t, p), lent(t, p)
	p.put(third)
	if !p.lower() {
		t.Error("not lowered although two are lent")
	}
	p.put(second)
	h.has(t, 3, 1, 0)
	if p.lower() {
		t.Error("lowered with one connection")
	}
	if p.lengthen(first) {
		p.put(first)
	} else {
		t.Error("the only connection serves no long use")
	}
}

// TestLongUses: long uses leave some connections for short ones.
func TestLongUses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for size, want := range map[int]int{1: 1, 2: 1, 3: 2, 5: 4, 6: 4, 8: 6} {
			h := &poolHost{}
			p := h.pool(size)
			var long []*conn
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				c, err := p.getLong(ctx)
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
				c := lent(t, p)
				if p.lengthen(c) {
					t.Error("one more long use")
				}
				p.put(long[0])
				if long = long[1:]; !p.lengthen(c) {
					t.Error("no long use although one has ended")
				}
				long = append(long, c)
			}
			got := make(chan *conn)
			go func() {
				c, err := p.getLong(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- c
			}()
			synctest.Wait()
			p.discard(long[0])
			long[0] = <-got
			for _, c := range long {
				p.put(c)
			}
			p.close()
		}
	})
}
