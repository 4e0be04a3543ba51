package storagedrivers_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	failed := errors.New("releasing failed")
	for _, tt := range []struct {
		name  string
		steps []string
		err   int // the step that gets the error of the release; -1 for none
	}{
		{"close alone", []string{"close"}, 0},
		{"close twice", []string{"close", "close"}, 0},
		{"user before", []string{"in", "out", "close"}, 2},
		{"user stays", []string{"in", "close", "out"}, 2},
		{"two users stay", []string{"in", "in", "close", "out", "close", "out"}, 5},
		{"refused after closing", []string{"in", "close", "refused", "out", "refused", "close"}, 3},
		{"never closed", []string{"in", "out", "in", "out"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			releases := 0
			u := storagedrivers.NewUsers(func() error {
				releases++
				return failed
			})
			for i, step := range tt.steps {
				var err error
				switch step {
				case "in", "refused":
					if got, want := u.Acquire(), step == "in"; got != want {
						t.Errorf("step %d: let in %t, want %t", i, got, want)
					}
				case "out":
					err = u.Release()
				case "close":
					err = u.Close()
				}
				if (err != nil) != (i == tt.err) {
					t.Errorf("step %d, %s: error %v", i, step, err)
				}
			}
			if want := min(tt.err+1, 1); releases != want {
				t.Errorf("released %d times, want %d", releases, want)
			}
		})
	}
}

// TestUsersRace: whoever is in is never released under, and the release comes once.
func TestUsersRace(t *testing.T) {
	t.Parallel()
	var in, releases atomic.Int32
	u := storagedrivers.NewUsers(func() error {
		releases.Add(1)
		if n := in.Load(); n != 0 {
			t.Errorf("released under %d users", n)
		}
		return nil
	})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for round := range 100 {
				if !u.Acquire() {
					return
				}
				in.Add(1)
				in.Add(-1)
				is(t, u.Release(), nil)
				if i%16 == 0 && round == 50 {
					is(t, u.Close(), nil)
				}
			}
		})
	}
	wg.Wait()
	if n := releases.Load(); n != 1 {
		t.Errorf("released %d times, want once", n)
	}
}
