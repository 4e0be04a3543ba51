package local

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestCommitOvertaken: another process removes or replaces an object that a commit keeps and
// removes, when the commit is decided. Then the object is kept by the other one alone.
func TestCommitOvertaken(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]string{"removed": "", "replaced": "theirs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, others := newCommit(t)
			unstage(t, others[:2])
			source, err := d.Stat(t.Context(), "f/removed")
			test.Must(t, err)
			kept, err := d.StageLink(t.Context(), source)
			test.Must(t, err)
			want := maps.Clone(before)
			delete(want, "f/removed")
			d.step = func(step string) {
				if step != "decided" {
					return
				}
				path := filepath.Join(d.path, "f/removed")
				test.Must(t, os.Remove(path))
				if theirs != "" {
					test.Must(t, os.WriteFile(path, []byte(theirs), filePerm))
					want["f/removed"] = theirs
				}
			}
			_, err = d.Commit(t.Context(), []storagedrivers.Change{
				{Staged: kept, Key: "kept/removed", Keeps: true},
				{Key: "f/removed", Options: storagedrivers.PutOptions{IfMatch: source.ETag}},
			})
			test.Is(t, err, storagedrivers.ErrChanged)
			test.Must(t, errors.Join(kept.Close(), d.Close()))
			holds(t, d.path, want, name)
		})
	}
}

// TestDecidedNeedsNoSpace: when a commit is decided, it needs no new name any more: each object
// that replaces another has the name that is renamed. Nothing of it is left in the end, nor after a
// failure.
func TestDecidedNeedsNoSpace(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		d, others := newCommit(t)
		unstage(t, others[:2])
		names := func() []string {
			found, err := filepath.Glob(filepath.Join(d.path, scratchPrefix+"*", "*"+asideNew))
			test.Must(t, err)
			return found
		}
		d.step = func(step string) {
			switch {
			case step == "decided" && len(names()) != 1:
				t.Errorf("the names are %q", names())
			case step == "named" && fails:
				test.Must(t, os.WriteFile(filepath.Join(d.path, "f/replaced"), []byte("another"), filePerm))
			}
		}
		old, err := d.Stat(t.Context(), "f/replaced")
		test.Must(t, err)
		changes := []storagedrivers.Change{
			{Staged: stageOn(t, d, "1"), Key: "f/created"},
			{Staged: stageOn(t, d, "2"), Key: "f/replaced", Options: storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, IfMatch: old.ETag}},
		}
		_, err = d.Commit(t.Context(), changes)
		if !errors.Is(err, storagedrivers.ErrChanged) == fails {
			t.Errorf("error %v", err)
		}
		if left := names(); left != nil {
			t.Errorf("left are %q", left)
		}
		unstage(t, changes)
		test.Must(t, d.Close())
	}
}
