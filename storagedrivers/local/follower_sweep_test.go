package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// TestReplacedRootIsNotSwept: after a call of Sweep, the driver of a new folder does not sweep by
// itself either.
func TestReplacedRootIsNotSwept(t *testing.T) {
	t.Parallel()
	f := follow(t)
	_, err := f.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: true})
	must(t, err)
	must(t, os.Rename(f.root, f.root+".old"))
	leave(t, f.root, scratchPrefix+"YOUNG/1", time.Hour)
	f.mustPut(t, "second")
	if _, err := os.Stat(filepath.Join(f.root, scratchPrefix+"YOUNG/1")); err != nil {
		t.Errorf("the leftover: %v", err)
	}
}
