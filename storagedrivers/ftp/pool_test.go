package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

// poolHost opens connections and records their states.
type poolHost struct {
	opened, open, asked atomic.Int64
	down                atomic.Bool // connections are dead, and none can be made
	most                int64       // connections that are allowed; 0 is any number
	closed              sync.Map    // *conn
}

var errDown = errors.New("poolHost down")

func (h *poolHost) pool(size int) *pool {
	p := newPool(size)
	p.connect = func(context.Context) (*conn, error) {
		if h.down.Load() {
			return nil, errDown
		}
		if n := h.open.Add(1); h.most > 0 && n > h.most {
			h.open.Add(-1)
			return nil, errTooMany
		}
		h.opened.Add(1)
		return &conn{}, nil
	}
	p.alive = func(context.Context, *conn) bool {
		h.asked.Add(1)
		return !h.down.Load()
	}
	p.end = func(c *conn) {
		if _, twice := h.closed.Swap(c, true); twice {
			panic("closed twice")
		}
		h.open.Add(-1)
	}
	p.onRefused = func(error) {}
	return p
}

var errTooMany = mapError(&textproto.Error{Code: jftp.StatusNotAvailable, Msg: "too many connections"})

// discard returns a broken connection.
func discard(p *pool, c *conn) {
	c.broken = true
	p.put(c)
}

func getConn(t *testing.T, p *pool) *conn {
	t.Helper()
	c, err := p.get(t.Context())
	test.Must(t, err, "getting a connection")
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
		first := getConn(t, p)
		second := getConn(t, p)
		p.put(second)
		p.put(first)
		test.Equal(t, getConn(t, p), first, "not the connection that was used last")
		p.put(first)
		h.has(t, 2, 2, 0)

		time.Sleep(10 * time.Second)
		p.put(getConn(t, p))
		h.has(t, 2, 2, 1)

		discard(p, getConn(t, p))
		h.has(t, 2, 1, 1)
	})
}

func TestDeadConnectionsAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(3)
		defer p.close()
		conns := []*conn{getConn(t, p), getConn(t, p), getConn(t, p)}
		for _, c := range conns {
			p.put(c)
		}
		time.Sleep(10 * time.Second)
		h.down.Store(true)
		for range 5 { // a failure takes no connection
			_, err := p.get(t.Context())
			test.Is(t, err, errDown)
		}
		h.has(t, 3, 0, 1)
		h.down.Store(false)
		p.put(getConn(t, p))
		h.has(t, 4, 1, 1)
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(2)
		defer p.close()
		first, second := getConn(t, p), getConn(t, p)
		p.put(first)
		time.Sleep(40 * time.Second)
		p.put(second)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.has(t, 2, 1, 0)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		h.has(t, 2, 0, 0)
		p.put(getConn(t, p))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		h.has(t, 3, 0, 0)
	})
}

func TestWaitingForAConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{}
		p := h.pool(1)
		c := getConn(t, p)

		busy := errors.New("busy")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, busy)
		defer cancel()
		_, err := p.get(ctx)
		test.Is(t, err, busy)
		cancelled, stop := context.WithCancel(t.Context())
		stop()
		_, err = p.get(cancelled)
		test.Is(t, err, context.Canceled)

		got := make(chan *conn)
		go func() { got <- getConn(t, p) }()
		time.Sleep(time.Second)
		p.put(c)
		if <-got != c {
			t.Error("another connection")
		}

		p.close()
		p.put(c)
		p.close()
		h.has(t, 1, 0, 0)
		_, err = p.get(t.Context())
		test.Is(t, err, storagedrivers.ErrClosed)
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
				if _, closed := h.closed.Load(c); closed || h.open.Load() > size {
					t.Errorf("closed %t, %d are open", closed, h.open.Load())
				}
				if (i+round)%7 == 0 {
					discard(p, c)
				} else {
					p.put(c)
				}
			}
		})
	}
	wg.Wait()
	p.close()
	test.Equal(t, h.open.Load(), 0, "are still open")
}

// TestHostAllowsFewer: users wait for the existing connections. After a minute the pool tries more.
func TestHostAllowsFewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &poolHost{most: 2}
		var refused atomic.Int64
		p := h.pool(8)
		p.onRefused = func(error) { refused.Add(1) }
		defer p.close()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				c := getConn(t, p)
				time.Sleep(time.Second)
				p.put(c)
			})
		}
		wg.Wait()
		if h.opened.Load() > 2 || refused.Load() != 6 {
			t.Errorf("%d were opened, %d refused, want 2 and 6", h.opened.Load(), refused.Load())
		}
		time.Sleep(refusedFor)
		h.most = 8
		conns := make([]*conn, 0, 8)
		for range 8 {
			conns = append(conns, getConn(t, p))
		}
		for _, c := range conns {
			p.put(c)
		}
		test.Equal(t, refused.Load(), 6, refused.Load()-6, "are refused later")
	})
}

// TestHostAllowsNone: without any connection, the error is that of the host.
func TestHostAllowsNone(t *testing.T) {
	t.Parallel()
	p := (&poolHost{}).pool(4)
	p.connect = func(context.Context) (*conn, error) { return nil, errTooMany }
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

// TestHostIsDead: an unreachable host has no limit. All users fail with its error at the same
// time, without waiting for each other.
func TestHostIsDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size, silence = 8, 10 * time.Second
		p := newPool(size)
		p.connect = func(context.Context) (*conn, error) {
			time.Sleep(silence)
			return nil, storagedrivers.ErrUnavailable
		}
		p.onRefused = func(err error) { t.Errorf("taken for a limit: %v", err) }
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
		test.Equal(t, time.Since(start), silence, "took")
	})
}

// TestDownloads: downloads leave connections for other uses, and an owner leaves some to others.
func TestDownloads(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{1: "a", 2: "a", 3: "ab", 4: "aab", 5: "aabb", 6: "aabb", 8: "aaabbb"} {
		synctest.Test(t, func(t *testing.T) {
			p := (&poolHost{}).pool(size)
			var downloads []*conn
			var got strings.Builder
			for _, owner := range "aaaabbbccd" {
				ctx, cancel := context.WithTimeout(storagedrivers.WithOwner(t.Context(), string(owner)), time.Second)
				c, err := p.getDownload(ctx)
				cancel()
				if err == nil {
					got.WriteRune(owner)
					downloads = append(downloads, c)
				} else if !errors.Is(err, storagedrivers.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want %v", err, storagedrivers.ErrBusy)
				}
			}
			test.Equal(t, got.String(), want, "of", size, "connections, downloads have")
			if size > 1 {
				p.put(getConn(t, p))
			}
			waiting := make(chan *conn)
			go func() {
				c, err := p.getDownload(t.Context())
				test.Is(t, err, nil)
				waiting <- c
			}()
			synctest.Wait()
			discard(p, downloads[0])
			downloads[0] = <-waiting
			for _, c := range downloads {
				p.put(c)
			}
			p.close()
		})
	}
}

// TestOwnersTakeTurns: an owner does not wait for all earlier uses of another.
func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := (&poolHost{}).pool(2)
		defer p.close()
		var mu sync.Mutex
		var order []string
		use := func(owner string) {
			c, err := p.get(storagedrivers.WithOwner(t.Context(), owner))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, owner)
			mu.Unlock()
			time.Sleep(time.Second)
			p.put(c)
		}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { use("many") })
		}
		synctest.Wait()
		wg.Go(func() { use("one") })
		wg.Wait()
		if at := slices.Index(order, "one"); at > 3 {
			t.Errorf("served in the order %v", order)
		}
	})
}

func TestNoConnectionIsFree(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	config := f.config()
	config.Connections = 1
	d := open(t, config)
	test.Must(t, put(t, d, "key", strings.Repeat("x", maxWhole+1), create))
	body, _, err := d.Open(t.Context(), "key", all)
	test.Must(t, err)
	patience := d.config.Timeout
	d.config.Timeout = options.Duration(50 * time.Millisecond)
	_, err = d.Stat(t.Context(), "key")
	d.config.Timeout = patience
	test.Is(t, err, storagedrivers.ErrBusy)
	test.Is(t, err, os.ErrDeadlineExceeded) // it is not repeated
	_, err = io.Copy(io.Discard, body)
	test.Is(t, err, nil)
	_, err = d.Stat(t.Context(), "key")
	test.Is(t, err, nil, "stat beside a reader at its end")
	test.Is(t, body.Close(), nil)
}

// TestFewConnections: uploads and readers work with the connections that the server allows.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			f := (&fake{facts: true, most: most}).start(t)
			config := f.config()
			config.Connections = 8
			s := storagedrivers.New("test", newFakeDriver(config), storagedrivers.Options{})
			defer s.Close()
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					key := fmt.Sprint("key", i)
					if _, err := s.Put(t.Context(), key, strings.NewReader(key), create); err != nil {
						t.Errorf("storing: %v", err)
						return
					}
					body, _, err := s.Open(t.Context(), key, all)
					if err != nil {
						t.Errorf("opening: %v", err)
						return
					}
					defer body.Close()
					if got, err := io.ReadAll(body); err != nil || string(got) != key {
						t.Errorf("read %q, error %v", got, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
