package local

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// TestSweepUndoesGroup: a sweep undoes a group with its folder, and the first use does so in any
// case, but a dry run does not.
func TestSweepUndoesGroup(t *testing.T) {
	t.Parallel()
	for name, uses := range map[string]func(*testing.T, *Driver) (isUndone, isRemoved bool){
		"dry run": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{DryRun: true, OlderThan: 1})
			return false, false
		},
		"young": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{OlderThan: time.Hour})
			return false, false
		},
		"removal": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{OlderThan: 1})
			return true, true
		},
		"first use after a dry run": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{DryRun: true, OlderThan: 1})
			if err := d.Check(t.Context()); err != nil {
				t.Error(err)
			}
			return true, false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complete := newCrashed(t, kinds["unnamed"], 0, false)
			c := newCrashed(t, kinds["unnamed"], 1+slices.Index(complete.steps, "durable"), false)
			d := New(Config{Root: c.root}, slog.New(slog.DiscardHandler))
			isUndone, isRemoved := uses(t, d)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			got := files(t, c.root)
			left := 0
			for name := range got {
				if strings.HasPrefix(name, scratchPrefix) {
					delete(got, name)
					left++
				}
			}
			if maps.Equal(got, c.undone) != isUndone || (left == 0) != isRemoved {
				t.Errorf("%v with %d leftovers, want undone: %t, removed: %t", got, left, isUndone, isRemoved)
			}
		})
	}
}

func sweepDriver(t *testing.T, d *Driver, opts storagedrivers.SweepOptions) {
	t.Helper()
	if _, err := d.Sweep(t.Context(), opts); err != nil {
		t.Error(err)
	}
}
