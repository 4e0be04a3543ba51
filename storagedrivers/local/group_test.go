package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// crash is a panic that simulates the end of a process.
type crash struct{ step string }

// crashAt makes the driver crash at the nth step of a commit. It returns the steps up to then.
func crashAt(d *Driver, n int) *[]string {
	steps := new([]string)
	d.step = func(name string) {
		if *steps = append(*steps, name); len(*steps) == n {
			panic(crash{name})
		}
	}
	return steps
}

// untilCrash runs f and reports whether the driver crashed in it.
func untilCrash(f func()) (crashed bool) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case crash:
			crashed = true
		default:
			panic(value)
		}
	}()
	f()
	return false
}

// die closes the handles and releases the lock of a driver, like the end of its process.
func (d *Driver) die() error {
	if d.root == nil {
		return nil
	}
	var lock error
	if d.scratch != nil {
		lock = d.scratch.lock.Close()
	}
	return errors.Join(lock, d.dir.Close(), d.root.Close())
}

// files returns the contents of all files below a folder, by name.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		data, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// before are the files before a request, and after those after it. The request creates two objects,
// one of them under another key than planned, replaces one, "replaces" a missing one, and removes
// one.
var (
	before = map[string]string{"f/replaced": "old", "f/removed": "removed", "other": "other"}
	after  = map[string]string{
		"f/created": "1", "g/created-1": "2", "g/created": "late", "f/replaced": "3", "f/new": "4", "other": "other",
	}
)

type member struct {
	key, content string
	mode         storagedrivers.Mode
}

// commitGroup runs a request, and rolls it back if rollBack is true.
func commitGroup(t *testing.T, s *storagedrivers.Storage, another func(key, content string), rollBack bool) {
	t.Helper()
	ctx := context.Background()
	group := s.Group()
	members := []member{
		{"f/created", "1", storagedrivers.CreateOnly},
		{"g/created", "2", storagedrivers.CreateOnly},
		{"f/replaced", "3", storagedrivers.Overwrite},
		{"f/new", "4", storagedrivers.Overwrite},
	}
	staged := make([]storagedrivers.Staged, 0, len(members))
	for _, m := range members {
		st, err := s.Stage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = st.Write([]byte(m.content))
		opts := storagedrivers.PutOptions{Mode: m.mode}
		if err := errors.Join(err, group.Plan(ctx, st, m.key, opts)); err != nil {
			t.Fatal(err)
		}
		staged = append(staged, st)
	}
	if err := errors.Join(group.PlanRemove(ctx, "f/removed"), group.Prepare(ctx)); err != nil {
		t.Fatal(err)
	}
	another("g/created", "late") // after it was seen to be free
	for i, m := range members {
		opts := storagedrivers.PutOptions{Mode: m.mode}
		_, err := staged[i].Commit(ctx, m.key, opts)
		if errors.Is(err, fs.ErrExist) && m.key == "g/created" {
			_, err = staged[i].Commit(ctx, "g/created-1", opts)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err := group.Remove(ctx, "f/removed")
	if rollBack {
		for _, st := range slices.Backward(staged) {
			err = errors.Join(err, st.Rollback(ctx))
		}
	} else {
		err = errors.Join(err, group.Finish(ctx))
	}
	err = errors.Join(err, group.Close())
	for _, st := range staged {
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// crashed is a folder with the files of before, in which a request has crashed at a step.
type crashed struct {
	root   string
	steps  []string
	undone map[string]string // what a recovery must leave
	ended  bool              // the request ended before the step
}

func unsynced(t *testing.T, root string) *storagedrivers.Storage {
	s := storagedrivers.New("test", New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	return s
}

func newCrashed(t *testing.T, set func(*Driver), at int, rollBack bool) crashed {
	t.Helper()
	root := t.TempDir()
	elsewhere := unsynced(t, root)
	for key, content := range before {
		if err := put(t, elsewhere, key, content, storagedrivers.CreateOnly); err != nil {
			t.Fatal(err)
		}
	}
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	set(d)
	steps := crashAt(d, at)
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	stored := false
	another := func(key, content string) {
		stored = true
		if err := put(t, elsewhere, key, content, storagedrivers.CreateOnly); err != nil {
			t.Error(err)
		}
	}
	ended := !untilCrash(func() { commitGroup(t, s, another, rollBack) })
	d.die()
	undone := maps.Clone(before)
	if stored {
		undone["g/created"] = "late"
	}
	return crashed{root, *steps, undone, ended}
}

// recoverAll opens the folder like the next process, on the same system.
func recoverAll(t *testing.T, root string, set func(*Driver)) {
	t.Helper()
	d := New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
	set(d)
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

var kinds = map[string]func(*Driver){
	"unnamed": func(*Driver) {},
	"named":   func(d *Driver) { d.named, d.sync = true, false },
	"copies":  func(d *Driver) { d.copies, d.sync = true, false },
}

// TestCrashOfGroup: after a crash at any step of a request and a restart, either all of the request
// is there or nothing. From the void record on it is all, because the request is acknowledged.
func TestCrashOfGroup(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		for _, rollBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rolled back %t", name, rollBack), func(t *testing.T) {
				t.Parallel()
				for at, ended := 1, false; !ended; at++ {
					c := newCrashed(t, set, at, rollBack)
					ended = c.ended
					recoverAll(t, c.root, set)
					want := c.undone
					if !rollBack && (ended || slices.Contains(c.steps, "void")) {
						want = after
					}
					if got := files(t, c.root); !maps.Equal(got, want) {
						t.Errorf("after a crash at %q: %v, want %v", c.steps, got, want)
					}
				}
			})
		}
	}
}

// TestCrashOfRecovery: after a crash at any step of a recovery, the next recovery completes it.
func TestCrashOfRecovery(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complete := newCrashed(t, set, 0, false)
			for at := 1 + slices.Index(complete.steps, "prepared"); complete.steps[at-1] != "void"; at++ {
				for again, recovered := 1, false; !recovered; again++ {
					c := newCrashed(t, set, at, false)
					d := New(Config{Root: c.root, Sync: new(false)}, slog.New(slog.DiscardHandler))
					set(d)
					steps := crashAt(d, again)
					recovered = !untilCrash(func() { _, _ = d.open() })
					d.die()
					recoverAll(t, c.root, set)
					if got := files(t, c.root); !maps.Equal(got, c.undone) {
						t.Errorf("after crashes at %q and %q: %v, want %v", c.steps, *steps, got, c.undone)
					}
				}
			}
		})
	}
}

// TestCrashLeavesOthers: changes of another process to the keys of a crashed request, before its
// recovery, are kept.
func TestCrashLeavesOthers(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, ended := 1, false; !ended; at++ {
				c := newCrashed(t, set, at, false)
				ended = c.ended
				// This process was running before and has not noticed the crash.
				running := New(Config{Root: c.root, Sync: new(false)}, slog.New(slog.DiscardHandler))
				running.undone = true
				s := storagedrivers.New("running", running, storagedrivers.Options{})
				want := map[string]string{"other": "other"}
				for _, key := range []string{"f/created", "g/created", "g/created-1", "f/replaced", "f/new", "f/removed"} {
					if err := put(t, s, key, "theirs", storagedrivers.Overwrite); err != nil {
						t.Fatal(err)
					}
					want[key] = "theirs"
				}
				for _, key := range []string{"f/new", "f/created"} {
					if err := s.Delete(t.Context(), key); err != nil {
						t.Fatal(err)
					}
					delete(want, key)
				}
				recoverAll(t, c.root, set)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if got := files(t, c.root); !maps.Equal(got, want) {
					t.Errorf("after a crash at %q: %v, want %v", c.steps, got, want)
				}
			}
		})
	}
}
