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

// synced is a request that commits one object, or two in a group.
type synced struct {
	*Driver
	t      *testing.T
	group  storagedrivers.Group // nil for one object
	staged []*staged
}

var syncedKeys = []string{"a/b/one", "c/two"}

func newSynced(t *testing.T, grouped bool) *synced {
	r := &synced{Driver: New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler)), t: t}
	t.Cleanup(func() { r.Close() })
	keys := syncedKeys[:1]
	if grouped {
		r.group, keys = r.Group(), syncedKeys
		t.Cleanup(func() { r.group.Close() })
	}
	for _, key := range keys {
		st, err := r.stage(t.Context())
		must(t, err)
		t.Cleanup(func() { st.Close() })
		must(t, st.stamp())
		if grouped {
			must(t, r.group.Plan(t.Context(), st, key, storagedrivers.PutOptions{}))
		}
		r.staged = append(r.staged, st)
	}
	return r
}

// breakFiles replaces the files of all objects by ones that cannot be synced.
func (r *synced) breakFiles() {
	for _, st := range r.staged {
		out, in, err := os.Pipe()
		must(r.t, err)
		must(r.t, errors.Join(out.Close(), st.file.Close()))
		st.file = in
	}
}

// commit commits all objects.
func (r *synced) commit() error {
	if r.group != nil {
		if err := r.group.Prepare(r.t.Context()); err != nil {
			return err
		}
	}
	for i, st := range r.staged {
		if _, err := st.Commit(r.t.Context(), syncedKeys[i], storagedrivers.PutOptions{}); err != nil {
			return err
		}
	}
	if r.group != nil {
		return r.group.Finish(r.t.Context())
	}
	return nil
}

// TestSyncs: a commit syncs the file before it has its name and again afterwards, and the folders of
// the name. It fails if it cannot.
func TestSyncs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		grouped bool
		step    string // after which the files cannot be synced; empty: they can
	}{
		"one":                  {false, ""},
		"bytes of one":         {false, "staged"},
		"name of one":          {false, "named"},
		"group":                {true, ""},
		"bytes of a group":     {true, "recorded"},
		"last name of a group": {true, "named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSynced(t, test.grouped)
			left := len(r.staged)
			r.step = func(step string) {
				if step == "named" {
					left--
				}
				if step == test.step && (step != "named" || left == 0) {
					r.breakFiles()
				}
			}
			r.mark("staged")
			err := r.commit()
			if test.step != "" {
				if !errors.Is(err, syscall.EINVAL) {
					t.Errorf("got %v, want the error of the sync", err)
				}
				return
			}
			must(t, err)
			for _, key := range syncedKeys[:len(r.staged)] {
				if !r.flush.isDurable(path.Dir(key)) {
					t.Errorf("the folder of %s is not synced", key)
				}
			}
		})
	}
}
