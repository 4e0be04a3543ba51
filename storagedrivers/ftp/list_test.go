package ftp

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// TestLevel: hidden folders are not listed, empty ones are, and no folder is entered.
func TestLevel(t *testing.T) {
	t.Parallel()
	for name, facts := range map[string]bool{"facts": true, "lists": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lists atomic.Int32
			f := &fake{facts: facts}
			f.before = func(_ *session, command, _ string) string {
				if command == "MLSD" || command == "LIST" {
					lists.Add(1)
				}
				return ""
			}
			f.start(t)
			for _, folder := range []string{"a", "a/.lock-new", "a/empty", "a/end.", "a/in", "a/in/deep", "b"} {
				f.aged(t, folder, true, time.Minute)
			}
			f.aged(t, "a/object", false, time.Minute)
			d := open(t, f.config())
			for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
				lists.Store(0)
				page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
				if err != nil || !slices.Equal(page.Folders, want) {
					t.Errorf("folders of %q: %q, want %q, error %v", prefix, page.Folders, want, err)
				}
				if n := lists.Load(); n != 1 {
					t.Errorf("%d folders were listed for %q, want one", n, prefix)
				}
			}
		})
	}
}
