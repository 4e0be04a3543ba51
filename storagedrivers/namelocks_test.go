package storagedrivers_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

func TestNameLocks(t *testing.T) {
	t.Parallel()
	var locks storagedrivers.NameLocks
	var group sync.WaitGroup
	inside := map[string]int{}
	for i := range 100 {
		group.Go(func() {
			unlock, err := locks.Lock(t.Context(), []string{"a", "b"}[i%2])
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
	if inside["a"] != 0 {
		t.Errorf("%d are still inside", inside["a"])
	}
}

func TestNameLocksGivenUp(t *testing.T) {
	t.Parallel()
	var locks storagedrivers.NameLocks
	unlock, err := locks.Lock(t.Context(), "a")
	is(t, err, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = locks.Lock(ctx, "a")
	is(t, err, context.DeadlineExceeded)
	other, err := locks.Lock(t.Context(), "b")
	is(t, err, nil)
	other()
	unlock()
	unlock, err = locks.Lock(t.Context(), "a")
	is(t, err, nil)
	unlock()
}

// TestNameLocksShared: a shared lock can be held several times, and excludes the exclusive lock.
func TestNameLocksShared(t *testing.T) {
	t.Parallel()
	var locks storagedrivers.NameLocks
	one, err := locks.Share(t.Context(), "a")
	is(t, err, nil)
	two, err := locks.Share(t.Context(), "a")
	is(t, err, nil)
	waits := func(lock func(context.Context, string) (func(), error)) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := lock(ctx, "a")
		is(t, err, context.DeadlineExceeded)
	}
	waits(locks.Lock)
	one()
	waits(locks.Lock)
	two()
	alone, err := locks.Lock(t.Context(), "a")
	is(t, err, nil)
	waits(locks.Share)
	waits(locks.Lock)
	alone()
	again, err := locks.Share(t.Context(), "a")
	is(t, err, nil)
	again()
}
