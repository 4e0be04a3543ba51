//go:build unix

package local

import (
	"errors"
	"log/slog"
	"os"
	"path"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
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
		test.Must(t, err)
		t.Cleanup(func() { st.Close() })
		test.Must(t, st.(*staged).stamp())
		r.changes = append(r.changes, storagedrivers.Change{Staged: st, Key: key})
	}
	return r
}

// breakFiles replaces the files of all objects by ones that cannot be synced.
func (r *synced) breakFiles() {
	for _, c := range r.changes {
		st := c.Staged.(*staged)
		out, in, err := os.Pipe()
		test.Must(r.t, err)
		test.Must(r.t, errors.Join(out.Close(), st.file.Close()))
		st.file = in
	}
}

// TestSyncs: a commit syncs the file before it has its name and again afterwards, and the folders of
// the name. It fails if it cannot.
func TestSyncs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
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
			r := newSynced(t, syncedKeys[:tt.keys])
			left := tt.keys
			r.step = func(step string) {
				if step == "named" {
					left--
				}
				if step == tt.step && (step != "named" || left == 0) {
					r.breakFiles()
				}
			}
			r.mark("staged")
			_, err := r.Commit(t.Context(), r.changes)
			if tt.step != "" {
				test.Is(t, err, syscall.EINVAL)
				return
			}
			test.Must(t, err)
			for _, key := range syncedKeys[:tt.keys] {
				if !r.current.flush.isDurable(path.Dir(key)) {
					t.Errorf("the folder of %s is not synced", key)
				}
			}
		})
	}
}
