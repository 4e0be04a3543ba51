package mediahttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 3
		r := newReaders(100)
		leave := make([]func(), 0, limit)
		for range limit {
			done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, done)
		}
		start := time.Now()
		if _, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit); !errors.Is(err, errClientBusy) || time.Since(start) != readerPatience {
			t.Errorf("one more: error %v after %v", err, time.Since(start))
		}
		other, err := r.enter(t.Context(), clientOwner("192.0.2.2"), limit)
		if err != nil {
			t.Errorf("another client: %v", err)
		}
		other()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit)
			if err != nil {
				t.Errorf("one that waits: %v", err)
				return
			}
			done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		waiting.Go(func() {
			if _, err := r.enter(ctx, clientOwner("192.0.2.1"), limit); !errors.Is(err, context.Canceled) {
				t.Errorf("one that stops waiting: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		leave[0]()
		waiting.Wait()
		for _, done := range leave[1:] {
			done()
		}
		if n := r.queue.Busy(); n != 0 {
			t.Errorf("%d are open, want none", n)
		}
	})
}

// TestReadersWaiting: two requests of a client may wait for each open item. They are admitted in
// the order of arrival, and further ones are refused at once.
func TestReadersWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 2
		r := newReaders(100)
		leave := make([]func(), 0, limit)
		for range limit {
			done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, done)
		}
		var waiting sync.WaitGroup
		var order []int
		for i := range waitingPerOpen * limit {
			ctx, cancel := context.WithCancel(t.Context())
			waiting.Go(func() {
				defer cancel()
				done, err := r.enter(ctx, clientOwner("192.0.2.1"), limit)
				if err == nil {
					order = append(order, i)
					done()
				}
			})
			synctest.Wait()
			if i == 1 {
				defer cancel()
				waiting.Go(func() {
					time.Sleep(time.Second)
					cancel()
				})
			}
		}
		start := time.Now()
		if _, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit); !errors.Is(err, errClientBusy) || time.Since(start) != 0 {
			t.Errorf("one too many: error %v after %v", err, time.Since(start))
		}
		time.Sleep(2 * time.Second)
		leave[0]()
		waiting.Wait()
		if !slices.Equal(order, []int{0, 2, 3}) {
			t.Errorf("admitted in the order %v", order)
		}
		leave[1]()
		if n := r.queue.Busy(); n != 0 {
			t.Errorf("%d are open, want none", n)
		}
	})
}

// TestReadersAtOnce: of the requests of one client at the same time, none waits for a slot of the
// reserve, and none gets one.
func TestReadersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			const limit, requests = 4, 10
			r, began := newReaders(limit), time.Now()
			var all sync.WaitGroup
			var open, busy atomic.Int32
			hold := make(chan struct{})
			for range requests {
				all.Go(func() {
					done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), requests)
					switch {
					case err == nil:
						open.Add(1)
						<-hold
						done()
					case errors.Is(err, errAllBusy):
						busy.Add(1)
					}
				})
			}
			synctest.Wait()
			if open.Load() != limit || busy.Load() != requests-limit || !time.Now().Equal(began) {
				t.Errorf("%d are open, %d refused, after %v", open.Load(), busy.Load(), time.Since(began))
			}
			close(hold)
			all.Wait()
		}
	})
}

// TestReadersOfAll: if one client holds all items that may be open, another one can still open its
// first item, but no second.
func TestReadersOfAll(t *testing.T) {
	t.Parallel()
	r := newReaders(4)
	leave := make([]func(), 0, 4)
	for range 4 {
		done, err := r.enter(t.Context(), clientOwner("2001:db8::1"), 10)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, done)
	}
	if _, err := r.enter(t.Context(), clientOwner("2001:db8::2"), 10); !errors.Is(err, errAllBusy) {
		t.Errorf("the same site: error %v, want busy", err)
	}
	done, err := r.enter(t.Context(), clientOwner("2001:db8:0:1::1"), 10)
	if err != nil {
		t.Fatalf("another site: %v", err)
	}
	if _, err := r.enter(t.Context(), clientOwner("2001:db8:0:1::1"), 10); !errors.Is(err, errAllBusy) {
		t.Errorf("its second: error %v, want busy", err)
	}
	done()
	for _, done := range leave {
		done()
	}
	if n := r.queue.Busy(); n != 0 {
		t.Errorf("%d are open, want none", n)
	}
}

func TestClientOwner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1", true},
		{"", "no address", true},
	} {
		if got := clientOwner(tt.a) == clientOwner(tt.b); got != tt.same {
			t.Errorf("%q and %q are one client: %t", tt.a, tt.b, got)
		}
	}
}

// TestAdmissionEndsOnce: an admission that ended early is not released again with its request.
func TestAdmissionEndsOnce(t *testing.T) {
	t.Parallel()
	h := &Handler{readers: newReaders(4)}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	a, other := &admission{limit: 4}, &admission{limit: 4}
	for _, a := range []*admission{a, a, other} {
		if err := h.enter(a, r); err != nil {
			t.Fatal(err)
		}
	}
	a.end()
	a.end()
	if n := h.readers.queue.Busy(); n != 1 {
		t.Errorf("%d are open, want one", n)
	}
	other.end()
}
