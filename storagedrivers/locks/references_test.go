package locks_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/locks"
)

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
