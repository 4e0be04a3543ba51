package queue

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddymedia/media/storagedrivers/internal/test"
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
	_, err := q.Acquire(t.Context(), Request{Units: 11})
	test.Is(t, err, ErrTooLarge, "acquiring")
	empty(t, q)
}

// TestUnitsOnly: a request for units waits for them in turn, and for no slot.
func TestUnitsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{t: t, q: New(Options{Slots: 1, Units: 10})}
		w.ask(Request{Owner: "a", Units: 5})
		w.ask(Request{Owner: "r", Units: 4, Most: 1, UnitsOnly: true})
		w.ask(Request{Owner: "r", Units: 4, Most: 1, UnitsOnly: true})
		w.ask(Request{Owner: "b", Units: 1})
		if w.order() != "ar" || w.q.Busy() != 1 {
			t.Errorf("admitted %s, %d slots are held", w.order(), w.q.Busy())
		}
		w.finishAll()
		if got := w.order(); got != "arrb" && got != "arbr" {
			t.Errorf("admitted %s", got)
		}
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
			test.Must(t, err)
			small.Release()
		}
		w := &worker{t: t, q: q}
		w.ask(Request{Owner: "b", Units: 1})
		test.Equal(t, len(w.slots), 0, "the units are not reserved for the large request")
		leave()
		test.Is(t, <-large, context.Canceled)
		synctest.Wait()
		test.Equal(t, len(w.slots), 1, "still waiting")
		s.Release()
		w.finishAll()
	})
}
