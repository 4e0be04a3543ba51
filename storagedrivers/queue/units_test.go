package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnits checks that small requests overtake a large one whose units are not free, but not
// without limit.
func TestUnits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 3, Units: 10})}
		w.ask(Request{Owner: "s", Units: 1})
		w.ask(Request{Owner: "L", Units: 10})
		for range 20 {
			w.ask(Request{Owner: "s", Units: 1})
			w.ask(Request{Owner: "u", Units: 1})
		}
		for !strings.Contains(w.order(), "L") && len(w.slots) > 0 {
			w.finish()
		}
		passed := strings.Index(w.order(), "L")
		if passed < 3 || passed > maxPassed+3 {
			t.Errorf("admitted after %d others: %s", passed, w.order())
		}
		w.finishAll()
	})
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	q := New(Options{Slots: 1, Units: 10})
	if _, err := q.Acquire(t.Context(), Request{Units: 11}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("acquiring: %v", err)
	}
	s, err := q.Acquire(t.Context(), Request{Units: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Change(t.Context(), 11); !errors.Is(err, ErrTooLarge) || s.Units() != 0 {
		t.Errorf("changing: %v, %d units", err, s.Units())
	}
	s.Release()
	empty(t, q)
}

// TestChange checks that a slot waiting for units precedes new requests.
func TestChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Slots: 2, Units: 10, Wait: time.Minute})
		first, _ := q.Acquire(t.Context(), Request{Owner: "a", Units: 6})
		second, _ := q.Acquire(t.Context(), Request{Owner: "b", Units: 4})
		changed := make(chan error)
		go func() { changed <- second.Change(t.Context(), 8) }()
		synctest.Wait()
		if !first.Contended() || q.Waiting() != 1 || q.Busy() != 1 {
			t.Errorf("contended %v, %d wait, %d work", first.Contended(), q.Waiting(), q.Busy())
		}
		first.Release()
		if err := <-changed; err != nil || second.Units() != 8 {
			t.Errorf("%v, %d units", err, second.Units())
		}
		third, _ := q.Acquire(t.Context(), Request{Owner: "a", Units: 2})
		go func() { changed <- second.Change(t.Context(), 9) }()
		if err := <-changed; !errors.Is(err, ErrTimeout) {
			t.Errorf("without an end: %v", err)
		}
		second.Release()
		third.Release()
		empty(t, q)
	})
}

// TestLeavingFreesOthers checks that requests blocked by a large one are admitted when it leaves.
func TestLeavingFreesOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Slots: 3, Units: 10})
		s, _ := q.Acquire(t.Context(), Request{Owner: "a", Units: 1})
		ctx, leave := context.WithCancel(t.Context())
		large := make(chan error)
		go func() {
			_, err := q.Acquire(ctx, Request{Owner: "L", Units: 10})
			large <- err
		}()
		synctest.Wait()
		for range maxPassed {
			small, err := q.Acquire(t.Context(), Request{Owner: "b", Units: 1})
			if err != nil {
				t.Fatal(err)
			}
			small.Release()
		}
		w := &worker{t: t, q: q}
		w.ask(Request{Owner: "b", Units: 1})
		if len(w.slots) != 0 {
			t.Error("the units are not reserved for the large request")
		}
		leave()
		if err := <-large; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		synctest.Wait()
		if len(w.slots) != 1 {
			t.Error("still waiting")
		}
		s.Release()
		w.finishAll()
	})
}
