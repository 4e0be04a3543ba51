package local

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestMovedAside: only replaced and removed objects, not new ones, count as moved aside.
func TestMovedAside(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
			set(d)
			defer d.Close()
			overwrite := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
			for _, key := range []string{"replaced", "removed"} {
				_, err := d.Put(t.Context(), key, strings.NewReader("old"), overwrite)
				must(t, err)
			}
			g := d.Group().(*group)
			for _, key := range []string{"new", "replaced"} {
				st, err := d.Stage(t.Context())
				must(t, err)
				defer st.Close()
				must(t, g.Plan(t.Context(), st, key, overwrite))
			}
			defer g.Close()
			must(t, errors.Join(g.PlanRemove(t.Context(), "removed"), g.Prepare(t.Context())))
			for _, s := range g.steps {
				if s.movedAside() {
					t.Errorf("%s is aside before its commit", s.Key)
				}
				if s.member != nil {
					_, err := s.member.Commit(t.Context(), s.Key, overwrite)
					must(t, err)
				}
			}
			must(t, g.Remove(t.Context(), "removed"))
			for _, s := range g.steps {
				if got, want := s.movedAside(), s.Key != "new"; got != want {
					t.Errorf("%s: aside %t, want %t", s.Key, got, want)
				}
			}
			must(t, g.Finish(t.Context()))
		})
	}
}
