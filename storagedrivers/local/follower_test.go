package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// followedRoot is a Follower and the folder that it follows.
type followedRoot struct {
	*Follower
	root string
	log  strings.Builder
}

// follow returns a Follower that has stored the object "first".
func follow(t *testing.T) *followedRoot {
	t.Helper()
	f := &followedRoot{root: filepath.Join(t.TempDir(), "root")}
	f.Follower = NewFollower(Config{Root: f.root}, slog.New(slog.NewTextHandler(&f.log, nil)))
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	f.mustPut(t, "first")
	return f
}

func (f *followedRoot) put(t *testing.T, key string) error {
	t.Helper()
	_, err := f.Put(t.Context(), key, strings.NewReader(key), storagedrivers.PutOptions{})
	return err
}

func (f *followedRoot) mustPut(t *testing.T, key string) {
	t.Helper()
	if err := f.put(t, key); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, f.root, append(keptIn(t, f.root), key)...)
}

// wantUnavailable asserts that every operation is unavailable, and none reports a missing object.
func (f *followedRoot) wantUnavailable(t *testing.T) {
	t.Helper()
	_, _, openErr := f.Open(t.Context(), "missing", storagedrivers.Range{})
	_, statErr := f.Stat(t.Context(), "missing")
	_, stageErr := f.Stage(t.Context())
	_, listErr := f.List(t.Context(), storagedrivers.ListOptions{})
	for op, err := range map[string]error{
		"put": f.put(t, "refused"), "open": openErr, "stat": statErr, "stage": stageErr, "list": listErr,
		"delete": f.Delete(t.Context(), "first"), "check": f.Check(t.Context()),
	} {
		if !errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want unavailable", op, err)
		}
		if storagedrivers.CauseOf(err) == "" {
			t.Errorf("%s: %v has no cause", op, err)
		}
	}
}

func (f *followedRoot) wantContent(t *testing.T, key string) {
	t.Helper()
	body, _, err := f.Open(t.Context(), key, storagedrivers.Range{})
	if err != nil {
		t.Error(err)
		return
	}
	defer body.Close()
	if b, err := io.ReadAll(body); err != nil || string(b) != key {
		t.Errorf("%s holds %q, %v", key, b, err)
	}
}

// keptIn returns the names in a folder, without scratch folders.
func keptIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), scratchPrefix) {
			names = append(names, entry.Name())
		}
	}
	return names
}

func wantFiles(t *testing.T, folder string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := keptIn(t, folder); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("%s holds %q, want %q", filepath.Base(folder), got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowerConformance(t *testing.T) {
	discard := slog.New(slog.DiscardHandler)
	p := &roots{driver: func(root string) *Driver { return New(Config{Root: root, Sync: new(false)}, discard) }}
	drivertest.Run(t, drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			p.first(t)
			return NewFollower(Config{Root: p.root(t), Sync: new(false)}, discard)
		},
		Another: func(t *testing.T) storagedrivers.Driver {
			return NewFollower(Config{Root: p.root(t), Sync: new(false)}, discard)
		},
		Leftovers: p.files, AbortUpload: p.cutOff, Later: p.later,
		Kill: func(_ *testing.T, d storagedrivers.Driver) { d.(*Follower).current.die() },
	})
}

// TestFollowerHasEveryMethod: storages could not use a method of the driver that Follower lacks.
func TestFollowerHasEveryMethod(t *testing.T) {
	t.Parallel()
	follower := reflect.TypeFor[*Follower]()
	for method := range reflect.TypeFor[*Driver]().Methods() {
		if _, found := follower.MethodByName(method.Name); !found {
			t.Errorf("no method %s", method.Name)
		}
	}
}

func TestRootReplaced(t *testing.T) {
	t.Parallel()
	f := follow(t)
	must(t, os.Rename(f.root, f.root+".old"))
	must(t, os.Mkdir(f.root, 0o755))
	f.wantContent(t, "first") // until the new folder is noticed
	f.mustPut(t, "second")
	if _, err := f.Stat(t.Context(), "first"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the object of the old folder: %v, want none", err)
	}
	f.wantContent(t, "second")
	wantFiles(t, f.root+".old", "first")
	if n := strings.Count(f.log.String(), "was replaced"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, f.log.String())
	}
}

// TestReplacedRootIsRead: an object of the new folder is found before anything is stored there.
func TestReplacedRootIsRead(t *testing.T) {
	t.Parallel()
	f := follow(t)
	must(t, os.Rename(f.root, f.root+".old"))
	must(t, os.Mkdir(f.root, 0o755))
	must(t, os.WriteFile(filepath.Join(f.root, "other"), []byte("other"), 0o600))
	f.wantContent(t, "other")
	if _, err := f.Stat(t.Context(), "first"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the object of the old folder: %v, want none", err)
	}
}

func TestRootRemoved(t *testing.T) {
	t.Parallel()
	f := follow(t)
	must(t, os.RemoveAll(f.root))
	f.wantUnavailable(t)
	if _, err := os.Stat(f.root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made again: %v", err)
	}
	must(t, os.Mkdir(f.root, 0o755))
	f.mustPut(t, "second")
	must(t, f.Check(t.Context()))
}

func TestRootMovedAwayAndBack(t *testing.T) {
	t.Parallel()
	f := follow(t)
	must(t, os.Rename(f.root, f.root+".old"))
	f.wantUnavailable(t)
	must(t, os.Rename(f.root+".old", f.root))
	f.wantContent(t, "first")
	f.mustPut(t, "second")
	if f.log.Len() > 0 {
		t.Errorf("logged %s", f.log.String())
	}
}

// TestRootReplacedDuringUpload: the object is in neither folder, and leaves nothing.
func TestRootReplacedDuringUpload(t *testing.T) {
	t.Parallel()
	for _, mode := range []storagedrivers.Mode{storagedrivers.CreateOnly, storagedrivers.Overwrite} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v named=%t", mode, named), func(t *testing.T) {
				t.Parallel()
				f := follow(t)
				f.current.named = f.current.named || named
				st, err := f.Stage(t.Context())
				must(t, err)
				_, err = io.WriteString(st, "staged")
				must(t, err)
				must(t, os.Rename(f.root, f.root+".old"))
				must(t, os.Mkdir(f.root, 0o755))
				f.mustPut(t, "second")
				for range 2 {
					if err := commitOne(t.Context(), f, st, "first", storagedrivers.PutOptions{Mode: mode}); !errors.Is(err, storagedrivers.ErrUnavailable) {
						t.Errorf("commit: %v, want unavailable", err)
					}
				}
				must(t, st.Close())
				wantFiles(t, f.root, "second")
				if entries, err := os.ReadDir(f.root + ".old"); err != nil || len(entries) != 1 {
					t.Errorf("the old folder holds %v, %v, want only its object", entries, err)
				}
			})
		}
	}
}

// TestRootReplacedDuringCommit: no object of a commit of several is in either folder.
func TestRootReplacedDuringCommit(t *testing.T) {
	t.Parallel()
	for _, replacedAt := range []string{"staged", "recorded", "prepared", "named", "durable"} {
		t.Run(replacedAt, func(t *testing.T) {
			t.Parallel()
			f := follow(t)
			replaced := false
			f.current.step = func(name string) {
				if name == replacedAt && !replaced {
					replaced = true
					must(t, os.Rename(f.root, f.root+".old"))
					must(t, os.Mkdir(f.root, 0o755))
				}
			}
			changes := []storagedrivers.Change{{Key: "second", Options: overwrite}, {Key: "third", Options: overwrite}}
			for i := range changes {
				st, err := f.Stage(t.Context())
				must(t, err)
				changes[i].Staged = st
			}
			f.current.mark("staged")
			if _, err := f.Commit(t.Context(), changes); !errors.Is(err, storagedrivers.ErrUnavailable) {
				t.Errorf("%v, want unavailable", err)
			}
			for _, c := range changes {
				must(t, c.Staged.Close())
			}
			f.mustPut(t, "fourth")
			wantFiles(t, f.root, "fourth")
			if entries, err := os.ReadDir(f.root + ".old"); err != nil || len(entries) != 1 {
				t.Errorf("the old folder holds %v, %v, want only its object", entries, err)
			}
		})
	}
}

// TestStagedMovedAwayAndBack: the folder is the same as before, so the object is committed.
func TestStagedMovedAwayAndBack(t *testing.T) {
	t.Parallel()
	f := follow(t)
	st, err := f.Stage(t.Context())
	must(t, err)
	defer st.Close()
	_, err = io.WriteString(st, "second")
	must(t, err)
	must(t, os.Rename(f.root, f.root+".old"))
	must(t, os.Rename(f.root+".old", f.root))
	err = commitOne(t.Context(), f, st, "second", storagedrivers.PutOptions{})
	must(t, err)
	wantFiles(t, f.root, "first", "second")
}
