package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker records the order in which requests are admitted. Each request holds its slot until
// finish.
type worker struct {
	t        *testing.T
	q        *Queue
	mu       sync.Mutex
	admitted []string
	errs     []error
	slots    []*Slot
}

// ask starts a request and returns when it is admitted, refused or waiting.
func (w *worker) ask(r Request) {
	go func() {
		slot, err := w.q.Acquire(w.t.Context(), r)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.errs = append(w.errs, err)
			return
		}
		w.admitted = append(w.admitted, r.Owner)
		w.slots = append(w.slots, slot)
	}()
	synctest.Wait()
}

// finish releases the oldest slot.
func (w *worker) finish() {
	w.mu.Lock()
	slot := w.slots[0]
	w.slots = w.slots[1:]
	w.mu.Unlock()
	slot.Release()
	synctest.Wait()
}

// finishAll releases all slots and checks that the queue is empty.
func (w *worker) finishAll() {
	w.t.Helper()
	for len(w.slots) > 0 {
		w.finish()
	}
	empty(w.t, w.q)
}

func empty(t *testing.T, q *Queue) {
	t.Helper()
	if q.busy != 0 || q.used != 0 || q.waiting != 0 || len(q.held) != 0 || len(q.lines) != 0 {
		t.Errorf("in the end %d slots and %d units are held, %d wait, %d owners hold and %d wait",
			q.busy, q.used, q.waiting, len(q.held), len(q.lines))
	}
}

func (w *worker) order() string { return strings.Join(w.admitted, "") }

func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1})}
		for _, owner := range "aaaaabbbc" {
			w.ask(Request{Owner: string(owner)})
		}
		w.finishAll()
		test.Equal(t, w.order(), "aabcababa", "admitted")
	})
}

// TestClients: an owner takes turns with its clients, and these among themselves; a network has at
// most five in each turn. In a full queue the client with the most requests loses its last one. A
// "." ends a request.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, asked, want string
		waiting           int
	}{
		{"by client", "aaaab", "aabaa", 0},
		{"of the owner too", "a--a-a-b", "a-a-b-a-", 0},
		{"the owner first", "aaab-", "a-aba", 0},
		{"the owner every other time", "aaa-.-", "a-a-a", 0},
		{"new clients do not pass the owner", "ab-.-cd", "a-b-cd", 0},
		{"by network", "aABCDEFGHb", "aABCDEbFGH", 0},
		{"turns of a network", "aABCDEABCDEb", "aABCDEbABCDE", 0},
		{"full", "aaaaab", "aabaa", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := New(Options{Slots: 1, Waiting: c.waiting})
				var admitted []rune
				slots := make(chan *Slot, len(c.asked))
				for _, client := range c.asked {
					if client == '.' {
						(<-slots).Release()
						synctest.Wait()
						continue
					}
					r := Request{Owner: "owner"}
					if client != '-' {
						r.Client, r.Network = string(client), "network of "+string(client)
					}
					if client >= 'A' && client <= 'Z' {
						r.Network = "network"
					}
					go func() {
						if slot, err := q.Acquire(t.Context(), r); err == nil {
							admitted = append(admitted, client)
							slots <- slot
						}
					}()
					synctest.Wait()
				}
				for len(slots) > 0 {
					(<-slots).Release()
					synctest.Wait()
				}
				test.Equal(t, string(admitted), c.want, "admitted")
				empty(t, q)
			})
		})
	}
}

// TestLastSlot checks that a slot is reserved for other owners while they wait, and no longer.
func TestLastSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 3})}
		for _, owner := range "aaaaaabb" {
			w.ask(Request{Owner: string(owner)})
		}
		test.Equal(t, w.order(), "aaa", "alone: admitted")
		w.finish()
		test.Equal(t, w.order(), "aaab", "admitted")
		w.finishAll()
	})
}

// TestLastSlotBeforeTurn checks that another owner gets the last slot, although the owner of all
// others is next in the rotation.
func TestLastSlotBeforeTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 3})}
		for _, owner := range "baaab" {
			w.ask(Request{Owner: string(owner)})
		}
		w.finish()
		test.Equal(t, w.order(), "baab", "admitted")
		w.finishAll()
	})
}

// TestFull checks that the owner with the most requests is refused, not the latest one.
func TestFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Waiting: 4})}
		for _, owner := range "aaaaa" {
			w.ask(Request{Owner: string(owner)})
		}
		if len(w.errs) != 0 || w.q.Waiting() != 4 {
			t.Errorf("%d wait, errors %v", w.q.Waiting(), w.errs)
		}
		for _, owner := range "abbb" { // a is over, then b replaces two requests of a
			w.ask(Request{Owner: string(owner)})
		}
		if len(w.errs) != 4 || !errors.Is(w.errs[0], ErrFull) {
			t.Errorf("errors %v", w.errs)
		}
		w.finishAll()
		if a, b := strings.Count(w.order(), "a"), strings.Count(w.order(), "b"); a != 3 || b != 2 {
			t.Errorf("admitted %s", w.order())
		}
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Slots: 1, Wait: 5 * time.Second})
		s, _ := q.Acquire(t.Context(), Request{Owner: "a"})
		start := time.Now()
		if _, err := q.Acquire(t.Context(), Request{Owner: "b"}); !errors.Is(err, ErrTimeout) || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		reason := errors.New("the client has left")
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(reason) })
		_, err := q.Acquire(ctx, Request{Owner: "b"})
		test.Is(t, err, reason, "one that left")
		_, err = q.Acquire(ctx, Request{Owner: "b"})
		test.Is(t, err, reason, "one that had left")
		s.Release()
		empty(t, q)
	})
}

// TestConcurrent: many owners acquire, abandon and release slots concurrently.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const slots, units = 4, 100
	q := New(Options{Slots: slots, Units: units, Wait: 50 * time.Millisecond, Waiting: 30})
	var (
		mu       sync.Mutex
		working  int
		admitted int
	)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(20))*time.Millisecond)
				s, err := q.Acquire(ctx, Request{Owner: fmt.Sprint(i % 7), Units: rand.Int64N(units + 1)})
				if err == nil {
					mu.Lock()
					working++
					admitted++
					if working > slots {
						t.Errorf("%d at the same time", working)
					}
					mu.Unlock()
					mu.Lock()
					working--
					mu.Unlock()
					s.Release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if admitted == 0 {
		t.Error("none was admitted")
	}
	empty(t, q)
}

// TestMost checks that an owner gets no more slots than its request allows, although no other
// request waits.
func TestMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 3})}
		for range 4 {
			w.ask(Request{Owner: "r", Most: 2})
		}
		w.ask(Request{Owner: "a"})
		test.Equal(t, w.order(), "rra", "admitted")
		w.finishAll()
	})
}
