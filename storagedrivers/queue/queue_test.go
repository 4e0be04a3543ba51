package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
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
	if q.busy != 0 || q.beside != 0 || q.used != 0 || q.waiting != 0 || len(q.held) != 0 {
		t.Errorf("in the end %d slots and %d units are held, %d wait, %d owners are known", q.busy, q.used, q.waiting, len(q.held))
	}
	for i, c := range q.classes {
		if len(c.owners) != 0 || c.rotation.Len() != 0 || !c.isEmpty() {
			t.Errorf("class %d has %d owners", i, len(c.owners))
		}
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
		if got := w.order(); got != "aabcababa" {
			t.Errorf("admitted %s", got)
		}
	})
}

// TestClients: the clients of an owner take turns, and a network has at most five in each turn. In
// a full class the client with the most requests loses its last one.
func TestClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, asked, want string
		waiting           int
	}{
		{"by client", "aaaab", "aabaa", 0},
		{"of the owner too", "a--a-a-b", "a-ab-a--", 0},
		{"by network", "aABCDEFGHb", "aABCDEbFGH", 0},
		{"turns of a network", "aABCDEABCDEb", "aABCDEbABCDE", 0},
		{"full", "aaaaab", "aabaa", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := New(Options{Slots: 1, Classes: []Class{{Waiting: c.waiting}}})
				var admitted []rune
				slots := make(chan *Slot, len(c.asked))
				for _, client := range c.asked {
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
				if got := string(admitted); got != c.want {
					t.Errorf("admitted %q, want %q", got, c.want)
				}
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
		if got := w.order(); got != "aaa" {
			t.Errorf("alone: admitted %s", got)
		}
		w.finish()
		if got := w.order(); got != "aaab" {
			t.Errorf("admitted %s", got)
		}
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
		if got := w.order(); got != "baab" {
			t.Errorf("admitted %s", got)
		}
		w.finishAll()
	})
}

func TestShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Classes: []Class{{Share: 2}, {Share: 1}}})}
		w.ask(Request{Owner: "-"})
		for range 12 {
			w.ask(Request{Owner: "b", Class: 1})
			w.ask(Request{Owner: "a", Class: 0})
		}
		for range 12 {
			w.finish()
		}
		if a := strings.Count(w.order(), "a"); a != 8 {
			t.Errorf("%d of 12 turns for two thirds: %s", a, w.order())
		}
		w.finishAll()
	})
}

// TestNoCredit checks that a class gains no credit while it has no requests.
func TestNoCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Classes: []Class{{}, {}}})}
		for range 50 {
			w.ask(Request{Owner: "a"})
		}
		for range 30 {
			w.finish()
		}
		for range 10 {
			w.ask(Request{Owner: "b", Class: 1})
		}
		w.admitted = nil
		for range 10 {
			w.finish()
		}
		if b := strings.Count(w.order(), "b"); b != 5 {
			t.Errorf("%d of 10 turns for a half: %s", b, w.order())
		}
		w.finishAll()
	})
}

// TestFull checks that the owner with the most requests is refused, not the latest one.
func TestFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Classes: []Class{{Waiting: 4}, {Waiting: 1}}})}
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
		w.ask(Request{Owner: "c", Class: 1})
		if len(w.errs) != 4 || w.q.Waiting() != 5 {
			t.Errorf("a class is full with the requests of another: %d wait, errors %v", w.q.Waiting(), w.errs)
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
		if _, err := q.Acquire(ctx, Request{Owner: "b"}); !errors.Is(err, reason) {
			t.Errorf("one that left: %v", err)
		}
		if _, err := q.Acquire(ctx, Request{Owner: "b"}); !errors.Is(err, reason) {
			t.Errorf("one that had left: %v", err)
		}
		s.Release()
		empty(t, q)
	})
}

// TestConcurrent: many owners acquire, change, yield, abandon and release slots concurrently.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const slots, units = 4, 100
	q := New(Options{Slots: slots, Units: units, Wait: 50 * time.Millisecond, Classes: []Class{{Share: 2, Waiting: 20}, {Waiting: 10}}})
	var (
		mu       sync.Mutex
		working  int
		admitted int
	)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(20))*time.Millisecond)
				s, err := q.Acquire(ctx, Request{Owner: fmt.Sprint(i % 7), Class: i % 2, Units: rand.Int64N(units + 1)})
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
					if n%5 == 0 {
						err = s.Change(ctx, rand.Int64N(units+1))
					}
					if err == nil {
						_ = s.Yield(ctx)
						_ = s.Contended()
					}
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

func BenchmarkAcquire(b *testing.B) {
	for _, owners := range []int{1, 100} {
		b.Run(fmt.Sprint(owners), func(b *testing.B) {
			q := New(Options{Slots: 2})
			names := slices.Repeat([]string{"owner"}, owners)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					s, err := q.Acquire(b.Context(), Request{Owner: names[i%owners]})
					if err != nil {
						b.Fatal(err)
					}
					s.Release()
				}
			})
		})
	}
}
