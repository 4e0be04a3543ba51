package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// yield calls Yield in a goroutine and returns its result, once the queue is still.
func yield(ctx context.Context, s *Slot) chan error {
	done := make(chan error, 1)
	go func() { done <- s.Yield(ctx) }()
	synctest.Wait()
	return done
}

// TestYield checks which requests a slot yields to, and that it continues before new ones of its
// class.
func TestYield(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		slots int
		held  []Request // the last one yields
		waits Request
		gives bool
	}{
		"an earlier class":         {1, []Request{{Owner: "a", Class: 1}}, Request{Owner: "b"}, true},
		"one of the same owner":    {1, []Request{{Owner: "a", Class: 1}}, Request{Owner: "a"}, true},
		"the same class":           {1, []Request{{Owner: "a", Class: 1}}, Request{Owner: "b", Class: 1}, false},
		"a later class":            {1, []Request{{Owner: "a"}}, Request{Owner: "b", Class: 1}, false},
		"all slots are its own":    {2, []Request{{Owner: "a"}, {Owner: "a"}}, Request{Owner: "b", Class: 1}, true},
		"not all are its own":      {2, []Request{{Owner: "b"}, {Owner: "a"}}, Request{Owner: "b", Class: 1}, false},
		"its units are not free":   {1, []Request{{Owner: "a", Class: 1, Units: 6}}, Request{Owner: "b", Units: 5}, false},
		"its owner has its most":   {2, []Request{{Owner: "r", Most: 1}, {Owner: "a", Class: 1}}, Request{Owner: "r", Most: 1}, false},
		"its owner is at its most": {2, []Request{{Owner: "a"}, {Owner: "r", Class: 1, Most: 1}}, Request{Owner: "r", Most: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &worker{t: t, q: New(Options{Slots: tt.slots, Units: 10, Wait: time.Minute, Classes: []Class{{}, {}}})}
				for _, r := range tt.held {
					w.ask(r)
				}
				s := w.slots[len(w.slots)-1]
				units := s.Units()
				w.ask(tt.waits)
				done := yield(t.Context(), s)
				if gave := len(done) == 0; gave != tt.gives || w.q.used != units+tt.waits.Units*int64(len(w.slots)-len(tt.held)) {
					t.Fatalf("gave way: %v, %d units are used", gave, w.q.used)
				}
				w.ask(Request{Owner: "c", Class: 1})
				time.Sleep(time.Hour) // its waiting has no limit
				if tt.gives {
					late := w.slots[len(w.slots)-1]
					w.slots = w.slots[:len(w.slots)-1]
					late.Release()
				}
				if err := <-done; err != nil || s.Units() != units {
					t.Errorf("continued with %d units: %v", s.Units(), err)
				}
				w.finishAll()
			})
		})
	}
}

// TestBeside checks that soon finished requests are admitted beside slots of later classes, one for
// each, whatever the number of slots of their owner, and only if their units are free.
func TestBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Slots: 2, Units: 10, Classes: []Class{{Beside: true}, {}}})
		w := &worker{t: t, q: q}
		for _, owner := range []string{"a", "b"} { // the first takes a slot
			w.ask(Request{Owner: owner, Units: 1})
		}
		w.ask(Request{Owner: "c"})
		if w.order() != "ab" {
			t.Fatalf("beside its own class: %s", w.order())
		}
		w.finish()
		w.ask(Request{Owner: "r", Class: 1, Units: 5, Most: 1})
		w.finish()
		w.ask(Request{Owner: "r", Units: 1, Most: 1})
		w.ask(Request{Owner: "d", Units: 6})
		w.ask(Request{Owner: "e"})
		w.ask(Request{Owner: "f"})
		if w.order() != "abcrr" || q.Busy() != 3 {
			t.Errorf("%s were admitted, %d at a time", w.order(), q.Busy())
		}
		w.finishAll()
		if w.order() != "abcrredf" {
			t.Errorf("%s were admitted", w.order())
		}
	})
}

// TestYieldShares checks that a slot continues between the requests that it yields to.
func TestYieldShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Classes: []Class{{}, {}}})}
		w.ask(Request{Owner: "a", Class: 1})
		s := w.slots[0]
		w.slots = nil
		for range 9 {
			w.ask(Request{Owner: "b"})
		}
		turns := 0
		for ; w.q.Waiting() > 0; turns++ {
			done := yield(t.Context(), s)
			for len(done) == 0 {
				w.finish()
			}
		}
		if turns < 8 {
			t.Errorf("%d turns beside 9 others", turns)
		}
		s.Release()
		w.finishAll()
	})
}

// TestYieldEnds checks that a slot whose context ends while it yields is released once.
func TestYieldEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Units: 10, Classes: []Class{{}, {}}})}
		w.ask(Request{Owner: "a", Class: 1, Units: 4})
		s := w.slots[0]
		w.slots = nil
		w.ask(Request{Owner: "b"})
		ctx, leave := context.WithCancel(t.Context())
		done := yield(ctx, s)
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) || s.Units() != 4 || s.Contended() {
			t.Errorf("%v, %d units", err, s.Units())
		}
		s.Release()
		w.finishAll()
	})
}

// TestYieldAndChange checks that slots which keep their units and slots which wait for units never
// block each other.
func TestYieldAndChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Units: 10, Wait: time.Minute, Classes: []Class{{}, {}}})}
		w.ask(Request{Owner: "a", Class: 1, Units: 6})
		large := w.slots[0]
		w.ask(Request{Owner: "b", Units: 1})
		yielded := yield(t.Context(), large)
		small := w.slots[1]
		w.slots = nil
		changed := make(chan error, 1)
		go func() { changed <- small.Change(t.Context(), 8) }()
		if err := <-yielded; err != nil {
			t.Fatal(err)
		}
		large.Release()
		if err := <-changed; err != nil || small.Units() != 8 {
			t.Errorf("%v, %d units", err, small.Units())
		}
		small.Release()
		w.finishAll()
	})
}

// TestMost checks that an owner gets no more slots than its request allows, although no other request waits.
func TestMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 3})}
		for range 4 {
			w.ask(Request{Owner: "r", Most: 2})
		}
		w.ask(Request{Owner: "a"})
		if got := w.order(); got != "rra" {
			t.Errorf("admitted %s", got)
		}
		w.finishAll()
	})
}

func TestPerOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 2, PerOwner: 3})}
		for _, owner := range "aaaaab" {
			w.ask(Request{Owner: string(owner)})
		}
		if len(w.errs) != 2 || !errors.Is(w.errs[0], ErrFull) || w.q.Waiting() != 2 {
			t.Errorf("%d wait, errors %v", w.q.Waiting(), w.errs)
		}
		w.finishAll()
		w.ask(Request{Owner: "a"})
		w.finishAll()
	})
}

// TestContended checks that only other owners contend for a slot, and only if it would help them.
func TestContended(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		waits Request
		want  bool
	}{
		"its owner":       {Request{Owner: "a"}, false},
		"another owner":   {Request{Owner: "b", Units: 9}, true},
		"with many units": {Request{Owner: "b", Units: 10}, false},
		"at its most":     {Request{Owner: "r", Most: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &worker{t: t, q: New(Options{Slots: 2, Units: 10})}
				w.ask(Request{Owner: "r", Units: 1, Most: 1})
				w.ask(Request{Owner: "a", Units: 5})
				w.ask(tt.waits)
				if got := w.slots[1].Contended(); got != tt.want {
					t.Errorf("contended: %v", got)
				}
				w.finishAll()
			})
		})
	}
}

// TestYieldAgain checks that a slot which lost its place while it gave way waits for another when it
// yields again.
func TestYieldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Units: 10, Classes: []Class{{}, {}}})}
		w.ask(Request{Owner: "a", Class: 1, Units: 4})
		s := w.slots[0]
		w.slots = nil
		w.ask(Request{Owner: "b"})
		w.ask(Request{Owner: "b"})
		ctx, leave := context.WithCancel(t.Context())
		done := yield(ctx, s)
		leave()
		<-done
		done = yield(t.Context(), s)
		if len(done) != 0 || w.q.Busy() != 1 {
			t.Errorf("continues beside another, %d are busy", w.q.Busy())
		}
		w.finish()
		w.finish()
		if err := <-done; err != nil || s.Units() != 4 || w.q.Busy() != 1 {
			t.Errorf("%v, %d units, %d are busy", err, s.Units(), w.q.Busy())
		}
		s.Release()
		w.finishAll()
	})
}

// TestYieldBeside checks that the only slot of an owner, beside one of a later class, may yield to a
// request whose owner has its most while another slot is free.
func TestYieldBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 2, Classes: []Class{{Beside: true}, {}}})}
		for _, r := range []Request{
			{Owner: "a", Class: 1},
			{Owner: "r", Class: 1, Most: 1},
			{Owner: "r", Most: 1}, // beside
			{Owner: "b"},          // beside
			{Owner: "r", Most: 1}, // waits
		} {
			w.ask(r)
		}
		s := w.slots[3]
		w.slots[0].Release()
		w.slots[2].Release()
		w.slots = w.slots[1:2]
		synctest.Wait()
		if w.order() != "arrb" {
			t.Fatalf("admitted %s", w.order())
		}
		done := yield(t.Context(), s)
		s.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.finishAll()
	})
}

// TestSpare checks that an owner gets one slot more than stay free.
func TestSpare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 6, Spare: true})}
		for _, owner := range "aaaabbbccd" {
			w.ask(Request{Owner: string(owner)})
		}
		if got := w.order(); got != "aaabbc" {
			t.Errorf("admitted %s", got)
		}
		w.finishAll()
		if got := w.order(); len(got) != 10 {
			t.Errorf("admitted %s in the end", got)
		}
	})
}

// TestResize checks that a smaller queue admits none until enough slots are released, and that a
// larger one admits waiting requests at once.
func TestResize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 3})}
		for _, owner := range "abcde" {
			w.ask(Request{Owner: string(owner)})
		}
		w.q.Resize(2)
		w.finish()
		if got := w.order(); got != "abc" {
			t.Errorf("admitted %s beyond the new size", got)
		}
		w.q.Resize(4)
		synctest.Wait()
		if got := w.order(); len(got) != 5 {
			t.Errorf("admitted %s, want all", got)
		}
		w.finishAll()
	})
}
