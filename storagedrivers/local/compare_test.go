package local

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestCompareAfterSyncing: an object that another process replaces or removes while a commit is made
// durable stays as it is, and so do the other objects of the commit.
func TestCompareAfterSyncing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ keys, removed []string }{
		"one": {keys: []string{"a"}}, "two": {keys: []string{"a", "new"}}, "with a removal": {keys: []string{"a"}, removed: []string{"b"}},
		"removal": {keys: []string{"new"}, removed: []string{"a"}}, "removals": {removed: []string{"b", "a"}},
	} {
		for _, theirs := range []string{"theirs", ""} {
			t.Run(fmt.Sprintf("%s %q", name, theirs), func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				d, other := New(Config{Root: root}, slog.New(slog.DiscardHandler)), New(Config{Root: root}, slog.New(slog.DiscardHandler))
				over := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
				want := map[string]string{"a": theirs, "b": "old b"}
				tags := map[string]string{}
				for _, key := range []string{"a", "b"} {
					info, err := d.Put(t.Context(), key, strings.NewReader("old "+key), over)
					if err != nil {
						t.Fatal(err)
					}
					tags[key] = info.ETag
				}
				changes := make([]storagedrivers.Change, 0, len(c.keys)+len(c.removed))
				for _, key := range append(c.keys, c.removed...) {
					changes = append(changes, storagedrivers.Change{Key: key, Options: over})
					changes[len(changes)-1].Options.IfMatch = tags[key]
				}
				for i := range c.keys {
					staged, err := d.Stage(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer staged.Close()
					if _, err := staged.Write([]byte("ours")); err != nil {
						t.Fatal(err)
					}
					changes[i].Staged = staged
				}
				overtaken := false
				d.step = func(step string) {
					if overtaken || step != "sealed" && step != "prepared" {
						return
					}
					overtaken = true
					var err error
					if theirs == "" {
						err = other.Delete(t.Context(), "a")
					} else {
						_, err = other.Put(t.Context(), "a", strings.NewReader(theirs), over)
					}
					if err != nil {
						t.Error(err)
					}
				}
				_, err := d.Commit(t.Context(), changes)
				if failed, ok := errors.AsType[*storagedrivers.CommitError](err); !errors.Is(err, storagedrivers.ErrChanged) || !ok ||
					len(failed.Replaced)+len(failed.Stored) > 0 || !overtaken {
					t.Errorf("error %v, overtaken: %v", err, overtaken)
				}
				if theirs == "" {
					delete(want, "a")
				}
				got := files(t, root)
				maps.DeleteFunc(got, func(name, _ string) bool {
					return strings.HasPrefix(filepath.Base(name), ".") || strings.HasPrefix(name, ".")
				})
				if !maps.Equal(got, want) {
					t.Errorf("left are %q, want %q", got, want)
				}
				if err := errors.Join(d.Close(), other.Close()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
