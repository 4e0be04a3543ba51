package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// removeAll removes objects by one commit. That of a single object has no record.
func (f *followedRoot) removeAll(t *testing.T, keys ...string) error {
	t.Helper()
	changes := make([]storagedrivers.Change, len(keys))
	for i, key := range keys {
		changes[i].Key = key
	}
	_, err := f.Commit(t.Context(), changes)
	return err
}

var removals = [][]string{{"first"}, {"first", "second"}}

// TestRemovalsFollow: a commit of removals uses the folder that is at the path when it begins.
func TestRemovalsFollow(t *testing.T) {
	t.Parallel()
	for _, keys := range removals {
		t.Run(fmt.Sprint(len(keys)), func(t *testing.T) {
			t.Parallel()
			f := follow(t)
			f.mustPut(t, "second")
			must(t, os.Rename(f.root, f.root+".old"))
			must(t, os.Mkdir(f.root, 0o755))
			for _, key := range []string{"first", "second", "third"} {
				must(t, os.WriteFile(filepath.Join(f.root, key), nil, 0o600))
			}
			must(t, f.removeAll(t, keys...))
			for _, key := range keys {
				if _, err := f.Stat(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v, want none", key, err)
				}
			}
			wantFiles(t, f.root, []string{"first", "second", "third"}[len(keys):]...)
			wantFiles(t, f.root+".old", "first", "second")
		})
	}
}

// TestRemovalsWithoutRoot: nothing is removed from a folder that was moved away, and the commit
// works when the folder is back.
func TestRemovalsWithoutRoot(t *testing.T) {
	t.Parallel()
	for _, keys := range removals {
		t.Run(fmt.Sprint(len(keys)), func(t *testing.T) {
			t.Parallel()
			f := follow(t)
			f.mustPut(t, "second")
			must(t, os.Rename(f.root, f.root+".old"))
			if err := f.removeAll(t, keys...); !errors.Is(err, storagedrivers.ErrUnavailable) {
				t.Errorf("removing: %v, want unavailable", err)
			}
			wantFiles(t, f.root+".old", "first", "second")
			must(t, os.Rename(f.root+".old", f.root))
			must(t, f.removeAll(t, keys...))
			wantFiles(t, f.root, []string{"first", "second"}[len(keys):]...)
		})
	}
}
