package locks_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
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
