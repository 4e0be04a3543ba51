//go:build unix

package local

import (
	"errors"
	"log/slog"
	"os"
	"path"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// synced is a request that commits one object, or two.
type synced struct {
	*Driver
	t       *testing.T
	changes []storagedrivers.Change
}

var syncedKeys = []string{"a/b/one", "c/two"}

func newSynced(t *testing.T, keys []string) *synced {
	r := &synced{Driver: New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler)), t: t}
	t.Cleanup(func() { r.Close() })
	for _, key := range keys {
		st, err := r.Stage(t.Context())
		must(t, err)
		t.Cleanup(func() { st.Close() })
		must(t, st.(*staged).stamp())
		r.changes = append(r.changes, storagedrivers.Change{Staged: st, Key: key})
	}
	return r
}

// breakFiles replaces the files of all objects by ones that cannot be synced.
func (r *synced) breakFiles() {
	for _, c := range r.changes {
		st := c.Staged.(*staged)
		out, in, err := os.Pipe()
		must(r.t, err)
		must(r.t, errors.Join(out.Close(), st.file.Close()))
		st.file = in
	}
}

// TestSyncs: a commit syncs the file before it has its name and again afterwards, and the folders of
// the name. It fails if it cannot.
func TestSyncs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys int
		step string // after which the files cannot be synced; empty: they can
	}{
		"one":                  {1, ""},
		"bytes of one":         {1, "staged"},
		"name of one":          {1, "named"},
		"several":              {2, ""},
		"bytes of several":     {2, "recorded"},
		"last name of several": {2, "named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSynced(t, syncedKeys[:test.keys])
			left := test.keys
			r.step = func(step string) {
				if step == "named" {
					left--
				}
				if step == test.step && (step != "named" || left == 0) {
					r.breakFiles()
				}
			}
			r.mark("staged")
			_, err := r.Commit(t.Context(), r.changes)
			if test.step != "" {
				if !errors.Is(err, syscall.EINVAL) {
					t.Errorf("got %v, want the error of the sync", err)
				}
				return
			}
			must(t, err)
			for _, key := range syncedKeys[:test.keys] {
				if !r.current.flush.isDurable(path.Dir(key)) {
					t.Errorf("the folder of %s is not synced", key)
				}
			}
		})
	}
}
