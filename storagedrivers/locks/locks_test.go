package locks_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/locks"
)

func TestNames(t *testing.T) {
	t.Parallel()
	var names locks.Names
	var group sync.WaitGroup
	inside := map[string]int{}
	for i := range 100 {
		group.Go(func() {
			unlock, err := names.Lock(t.Context(), []string{"a", "b"}[i%2])
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if i%2 == 0 { // the race detector sees whoever else is in here
				inside["a"]++
				inside["a"]--
			}
		})
	}
	group.Wait()
	test.Equal(t, inside["a"], 0, "are still inside")
}

func TestNamesGivenUp(t *testing.T) {
	t.Parallel()
	var names locks.Names
	unlock, err := names.Lock(t.Context(), "a")
	test.Is(t, err, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = names.Lock(ctx, "a")
	test.Is(t, err, context.DeadlineExceeded)
	other, err := names.Lock(t.Context(), "b")
	test.Is(t, err, nil)
	other()
	unlock()
	unlock, err = names.Lock(t.Context(), "a")
	test.Is(t, err, nil)
	unlock()
}

// TestNamesShared: a shared lock can be held several times, and excludes the exclusive lock.
func TestNamesShared(t *testing.T) {
	t.Parallel()
	var names locks.Names
	one, err := names.Share(t.Context(), "a")
	test.Is(t, err, nil)
	two, err := names.Share(t.Context(), "a")
	test.Is(t, err, nil)
	waits := func(lock func(context.Context, string) (func(), error)) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := lock(ctx, "a")
		test.Is(t, err, context.DeadlineExceeded)
	}
	waits(names.Lock)
	one()
	waits(names.Lock)
	two()
	alone, err := names.Lock(t.Context(), "a")
	test.Is(t, err, nil)
	waits(names.Share)
	waits(names.Lock)
	alone()
	again, err := names.Share(t.Context(), "a")
	test.Is(t, err, nil)
	again()
}

func TestReferences(t *testing.T) {
	t.Parallel()
	failed := errors.New("releasing failed")
	for _, tt := range []struct {
		name  string
		steps []string
		err   int // the step that gets the error of the release; -1 for none
	}{
		{"close alone", []string{"close"}, 0},
		{"close twice", []string{"close", "close"}, 0},
		{"released before", []string{"acquire", "release", "close"}, 2},
		{"released after", []string{"acquire", "close", "release"}, 2},
		{"two released after", []string{"acquire", "acquire", "close", "release", "close", "release"}, 5},
		{"refused after closing", []string{"acquire", "close", "refused", "release", "refused", "close"}, 3},
		{"never closed", []string{"acquire", "release", "acquire", "release"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			releases := 0
			r := locks.NewReferences(func() error {
				releases++
				return failed
			})
			for i, step := range tt.steps {
				var err error
				switch step {
				case "acquire", "refused":
					test.Equal(t, r.Acquire(), step == "acquire", "step", i, "acquired")
				case "release":
					err = r.Release()
				case "close":
					err = r.Close()
				}
				if (err != nil) != (i == tt.err) {
					t.Errorf("step %d, %s: error %v", i, step, err)
				}
			}
			test.Equal(t, releases, min(tt.err+1, 1), "released", "times")
		})
	}
}

// TestReferencesRace: the resource is released once, and not while it is referenced.
func TestReferencesRace(t *testing.T) {
	t.Parallel()
	var held, releases atomic.Int32
	r := locks.NewReferences(func() error {
		releases.Add(1)
		test.Equal(t, held.Load(), 0, "released under", "references")
		return nil
	})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for round := range 100 {
				if !r.Acquire() {
					return
				}
				held.Add(1)
				held.Add(-1)
				test.Is(t, r.Release(), nil)
				if i%16 == 0 && round == 50 {
					test.Is(t, r.Close(), nil)
				}
			}
		})
	}
	wg.Wait()
	test.Equal(t, releases.Load(), 1, "released", "times")
}
