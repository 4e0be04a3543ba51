package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
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
	if err := open(t, root).Check(ctx); err != nil { // another process starts
		t.Fatal(err)
	}
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
	if err != nil || len(names) != 1 {
		t.Errorf("the root holds %v (%v), want only the object", names, err)
	}
}

func TestRootThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	test.Must(t, os.WriteFile(file, nil, 0o600))
	for name, root := range map[string]string{"a file": file, "below a file": filepath.Join(file, "x")} {
		s := open(t, root)
		if err := s.Check(context.Background()); err == nil {
			t.Errorf("%s: check passed", name)
		}
		if err := put(t, s, "a", "x", storagedrivers.CreateOnly); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: put gave %v, want an error that is not a missing object", name, err)
		}
	}
	root := filepath.Join(t.TempDir(), "later")
	s := open(t, root)
	test.Is(t, put(t, s, "a/b/c", "x", storagedrivers.CreateOnly), nil, "a root that is missing is not made")
}

// TestRootThatIsGone: the backend is unavailable, and no object counts as missing.
func TestRootThatIsGone(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root)
	test.Must(t, put(t, s, "a", "x", storagedrivers.CreateOnly))
	test.Must(t, os.RemoveAll(root))
	_, err := s.Stat(context.Background(), "a")
	test.Is(t, err, storagedrivers.ErrUnavailable, "stat")
	_, _, err = s.Open(context.Background(), "a", storagedrivers.Range{})
	test.Is(t, err, storagedrivers.ErrUnavailable, "open")
	if err := put(t, s, "b", "x", storagedrivers.CreateOnly); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("put: %v, want an error that is no missing object", err)
	}
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
