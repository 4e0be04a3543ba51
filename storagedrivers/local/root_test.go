package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func open(t *testing.T, root string) *storagedrivers.Storage {
	t.Helper()
	s := storagedrivers.New("test", New(Config{Root: root}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() {
		test.Is(t, s.Close(), nil, "closing")
	})
	return s
}

func put(t *testing.T, s *storagedrivers.Storage, key, content string, mode storagedrivers.Mode) error {
	t.Helper()
	_, err := s.Put(context.Background(), key, strings.NewReader(content), storagedrivers.PutOptions{Mode: mode})
	return err
}

// TestLinksThatLeaveTheRootAreRefused: a link in the root does not lead out of it (CVE-2026-54094).
func TestLinksThatLeaveTheRootAreRefused(t *testing.T) {
	t.Parallel()
	ctx, outside, root := context.Background(), t.TempDir(), t.TempDir()
	test.Must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	for name, target := range map[string]string{
		"file": filepath.Join(outside, "secret"), "folder": outside,
		"up": "../" + filepath.Base(outside) + "/secret", "inside": "kept",
	} {
		test.Must(t, os.Symlink(target, filepath.Join(root, name)))
	}
	s := open(t, root)
	test.Must(t, put(t, s, "kept", "kept", storagedrivers.CreateOnly))
	for _, key := range []string{"file", "folder/secret", "up"} {
		_, _, err := s.Open(ctx, key, storagedrivers.Range{})
		test.Is(t, err, storagedrivers.ErrInvalidKey, "open", key)
		_, err = s.Stat(ctx, key)
		test.Is(t, err, storagedrivers.ErrInvalidKey, "stat", key)
	}
	test.Is(t, put(t, s, "folder/new", "x", storagedrivers.Overwrite), storagedrivers.ErrInvalidKey, "put below a link")
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
		t.Errorf("the folder outside holds %v (%v), want only its secret", names, err)
	}
	body, _, err := s.Open(ctx, "inside", storagedrivers.Range{})
	test.Must(t, err, "open of a link that stays inside")
	defer body.Close()
	if b, err := io.ReadAll(body); err != nil || string(b) != "kept" {
		t.Errorf("link that stays inside: %q, %v", b, err)
	}
	var listed []string
	for info, err := range s.All(ctx, "") {
		test.Must(t, err)
		listed = append(listed, info.Key)
	}
	test.Same(t, listed, []string{"inside", "kept"}, "listed")
}

func TestStartSweepsOnlyUnusedFolders(t *testing.T) {
	t.Parallel()
	ctx, root := context.Background(), t.TempDir()
	test.Must(t, os.MkdirAll(filepath.Join(root, scratchPrefix+"DEAD", "deep"), 0o700))
	test.Must(t, os.WriteFile(filepath.Join(root, scratchPrefix+"DEAD", "1"), []byte("half"), 0o600))
	running := open(t, root)
	for _, content := range []string{"old", "new"} {
		test.Must(t, put(t, running, "a", content, storagedrivers.Overwrite))
	}
	staged, err := running.Stage(ctx)
	test.Must(t, err)
	defer staged.Close()
	_, err = staged.Write([]byte("newest"))
	test.Must(t, err)
	test.Must(t, open(t, root).Check(ctx)) // another process starts
	_, err = os.Stat(filepath.Join(root, scratchPrefix+"DEAD"))
	test.Is(t, err, fs.ErrNotExist, "the leftover is still there")
	_, err = running.Commit(ctx, storagedrivers.Change{Staged: staged, Key: "a", Options: overwrite})
	test.Is(t, err, nil, "the staged object is gone with the sweep")
}

func TestCloseLeavesNoFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := storagedrivers.New("test", New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	for range 2 {
		test.Must(t, put(t, s, "a", "x", storagedrivers.Overwrite))
	}
	test.Must(t, s.Close())
	names, err := os.ReadDir(root)
	test.Is(t, err, nil)
	test.Equal(t, len(names), 1, "the root holds", names)
}

func TestRootThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	test.Must(t, os.WriteFile(file, nil, 0o600))
	for name, root := range map[string]string{"a file": file, "below a file": filepath.Join(file, "x")} {
		s := open(t, root)
		test.Fails(t, s.Check(context.Background()), name, "check passed")
		if err := put(t, s, "a", "x", storagedrivers.CreateOnly); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: put gave %v, want an error that is not a missing object", name, err)
		}
	}
	root := filepath.Join(t.TempDir(), "later")
	s := open(t, root)
	test.Is(t, put(t, s, "a/b/c", "x", storagedrivers.CreateOnly), nil, "a root that is missing is not made")
}

func TestETagsOfRapidGenerationsDiffer(t *testing.T) {
	t.Parallel()
	s, seen := open(t, t.TempDir()), map[string]bool{}
	for range 200 {
		info, err := s.Put(context.Background(), "a", bytes.NewReader([]byte("same")),
			storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
		test.Must(t, err)
		if seen[info.ETag] {
			t.Fatalf("entity tag %s came twice", info.ETag)
		}
		seen[info.ETag] = true
	}
}

// followedRoot is a driver and the folder that it follows.
type followedRoot struct {
	*Driver
	root string
	log  strings.Builder
}

// follow returns a driver that has stored the object "first".
func follow(t *testing.T) *followedRoot {
	t.Helper()
	f := &followedRoot{root: filepath.Join(t.TempDir(), "root")}
	f.Driver = New(Config{Root: f.root}, slog.New(slog.NewTextHandler(&f.log, nil)))
	t.Cleanup(func() {
		test.Is(t, f.Close(), nil, "closing")
	})
	f.mustPut(t, "first")
	return f
}

// replace moves the folder away and makes another one.
func (f *followedRoot) replace(t *testing.T) {
	t.Helper()
	test.Must(t, os.Rename(f.root, f.root+".old"))
	test.Must(t, os.Mkdir(f.root, 0o755))
}

func (f *followedRoot) put(t *testing.T, key string) error {
	t.Helper()
	_, err := f.Put(t.Context(), key, strings.NewReader(key), storagedrivers.PutOptions{})
	return err
}

func (f *followedRoot) mustPut(t *testing.T, key string) {
	t.Helper()
	test.Must(t, f.put(t, key))
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
		"delete": f.Delete(t.Context(), "first", storagedrivers.DeleteOptions{}), "check": f.Check(t.Context()),
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
	test.Must(t, err)
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
	test.Same(t, keptIn(t, folder), slices.Compact(want), filepath.Base(folder), "holds", want)
}

func TestRootReplaced(t *testing.T) {
	t.Parallel()
	f := follow(t)
	f.replace(t)
	f.wantContent(t, "first") // until the new folder is noticed
	f.mustPut(t, "second")
	_, err := f.Stat(t.Context(), "first")
	test.Is(t, err, fs.ErrNotExist, "the object of the old folder")
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
	f.replace(t)
	test.Must(t, os.WriteFile(filepath.Join(f.root, "other"), []byte("other"), 0o600))
	f.wantContent(t, "other")
	_, err := f.Stat(t.Context(), "first")
	test.Is(t, err, fs.ErrNotExist, "the object of the old folder")
}

func TestRootRemoved(t *testing.T) {
	t.Parallel()
	f := follow(t)
	test.Must(t, os.RemoveAll(f.root))
	f.wantUnavailable(t)
	_, err := os.Stat(f.root)
	test.Is(t, err, fs.ErrNotExist, "the folder was made again")
	test.Must(t, os.Mkdir(f.root, 0o755))
	f.mustPut(t, "second")
	test.Must(t, f.Check(t.Context()))
}

func TestRootMovedAwayAndBack(t *testing.T) {
	t.Parallel()
	f := follow(t)
	test.Must(t, os.Rename(f.root, f.root+".old"))
	f.wantUnavailable(t)
	test.Must(t, os.Rename(f.root+".old", f.root))
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
				f.named = f.named || named
				st := stageOn(t, f, "staged")
				f.replace(t)
				f.mustPut(t, "second")
				for range 2 {
					test.Is(t, commitOne(t.Context(), f, st, "first", storagedrivers.PutOptions{Mode: mode}), storagedrivers.ErrUnavailable, "commit")
				}
				test.Must(t, st.Close())
				wantFiles(t, f.root, "second")
				if entries, err := os.ReadDir(f.root + ".old"); err != nil || len(entries) != 1 {
					t.Errorf("the old folder holds %v, %v, want only its object", entries, err)
				}
			})
		}
	}
}

// TestRootReplacedDuringCommit: no object of a commit is in either folder.
func TestRootReplacedDuringCommit(t *testing.T) {
	t.Parallel()
	changes := []storagedrivers.Change{{Key: "second", Options: overwrite}, {Key: "third", Options: overwrite}}
	for _, tt := range []struct {
		replacedAt string
		objects    int
	}{{"staged", 2}, {"recorded", 2}, {"prepared", 2}, {"named", 2}, {"durable", 2}, {"named", 1}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			t.Parallel()
			f := follow(t)
			replaced := false
			f.step = func(name string) {
				if name == tt.replacedAt && !replaced {
					replaced = true
					f.replace(t)
				}
			}
			changes := slices.Clone(changes[:tt.objects])
			for i := range changes {
				changes[i].Staged = stageOn(t, f, "")
			}
			f.mark("staged")
			_, err := f.Commit(t.Context(), changes)
			test.Is(t, err, storagedrivers.ErrUnavailable)
			unstage(t, changes)
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
	st := stageOn(t, f, "second")
	test.Must(t, os.Rename(f.root, f.root+".old"))
	test.Must(t, os.Rename(f.root+".old", f.root))
	test.Must(t, commitOne(t.Context(), f, st, "second", storagedrivers.PutOptions{}))
	wantFiles(t, f.root, "first", "second")
}

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
			f.replace(t)
			for _, key := range []string{"first", "second", "third"} {
				test.Must(t, os.WriteFile(filepath.Join(f.root, key), nil, 0o600))
			}
			test.Must(t, f.removeAll(t, keys...))
			for _, key := range keys {
				_, err := f.Stat(t.Context(), key)
				test.Is(t, err, fs.ErrNotExist, key)
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
			test.Must(t, os.Rename(f.root, f.root+".old"))
			test.Is(t, f.removeAll(t, keys...), storagedrivers.ErrUnavailable, "removing")
			wantFiles(t, f.root+".old", "first", "second")
			test.Must(t, os.Rename(f.root+".old", f.root))
			test.Must(t, f.removeAll(t, keys...))
			wantFiles(t, f.root, []string{"first", "second"}[len(keys):]...)
		})
	}
}

// TestReplacedRootIsNotSwept: after a call of Sweep, the driver of a new folder does not sweep by
// itself either.
func TestReplacedRootIsNotSwept(t *testing.T) {
	t.Parallel()
	f := follow(t)
	_, err := f.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: true})
	test.Must(t, err)
	test.Must(t, os.Rename(f.root, f.root+".old"))
	leave(t, f.root, scratchPrefix+"YOUNG/1", time.Hour)
	f.mustPut(t, "second")
	_, err = os.Stat(filepath.Join(f.root, scratchPrefix+"YOUNG/1"))
	test.Is(t, err, nil, "the leftover")
}

// TestRootGoneDuringUpload: without the root nothing is stored, and it is not reported as a missing
// object.
func TestRootGoneDuringUpload(t *testing.T) {
	t.Parallel()
	for _, mode := range []storagedrivers.Mode{storagedrivers.CreateOnly, storagedrivers.Overwrite} {
		for how, lose := range map[string]func(root string) error{
			"moved":   func(root string) error { return os.Rename(root, root+".old") },
			"removed": os.RemoveAll,
		} {
			t.Run(fmt.Sprintf("%v %s", mode, how), func(t *testing.T) {
				t.Parallel()
				f := follow(t)
				st := stageOn(t, f, "staged")
				test.Must(t, lose(f.root))
				err := commitOne(t.Context(), f, st, "deep/er", storagedrivers.PutOptions{Mode: mode})
				if !errors.Is(err, storagedrivers.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) || storagedrivers.CauseOf(err) == "" {
					t.Errorf("commit: %v, want unavailable with a cause", err)
				}
				test.Must(t, st.Close())
				_, err = os.Stat(f.root)
				test.Is(t, err, fs.ErrNotExist, "the folder was made again")
			})
		}
	}
}
