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

// TestSweepRecovers: a sweep recovers a commit and removes its folder, and the first use recovers it in
// any case, but a dry run does not.
func TestSweepRecovers(t *testing.T) {
	t.Parallel()
	for name, uses := range map[string]func(*testing.T, *Driver) (isRecovered, isRemoved bool){
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
			complete := newCrashed(t, kinds["unnamed"], 0, true)
			c := newCrashed(t, kinds["unnamed"], 1+slices.Index(complete.steps, "applied"), true)
			d := New(Config{Root: c.root}, slog.New(slog.DiscardHandler))
			isRecovered, isRemoved := uses(t, d)
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
			if maps.Equal(got, c.want) != isRecovered || (left == 0) != isRemoved {
				t.Errorf("%v with %d leftovers, want recovered: %t, removed: %t", got, left, isRecovered, isRemoved)
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
