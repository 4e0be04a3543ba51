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
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func open(t *testing.T, root string) *storagedrivers.Storage {
	t.Helper()
	s := storagedrivers.New("test", New(Config{Root: root}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
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
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"file": filepath.Join(outside, "secret"), "folder": outside,
		"up": "../" + filepath.Base(outside) + "/secret", "inside": "kept",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, root)
	if err := put(t, s, "kept", "kept", storagedrivers.CreateOnly); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"file", "folder/secret", "up"} {
		if _, _, err := s.Open(ctx, key, storagedrivers.Range{}); !errors.Is(err, storagedrivers.ErrInvalidKey) {
			t.Errorf("open %q: error %v, want invalid key", key, err)
		}
		if _, err := s.Stat(ctx, key); !errors.Is(err, storagedrivers.ErrInvalidKey) {
			t.Errorf("stat %q: error %v, want invalid key", key, err)
		}
	}
	if err := put(t, s, "folder/new", "x", storagedrivers.Overwrite); !errors.Is(err, storagedrivers.ErrInvalidKey) {
		t.Errorf("put below a link: error %v, want invalid key", err)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
		t.Errorf("the folder outside holds %v (%v), want only its secret", names, err)
	}
	body, _, err := s.Open(ctx, "inside", storagedrivers.Range{})
	if err != nil {
		t.Fatalf("open of a link that stays inside: %v", err)
	}
	defer body.Close()
	if b, err := io.ReadAll(body); err != nil || string(b) != "kept" {
		t.Errorf("link that stays inside: %q, %v", b, err)
	}
	var listed []string
	for info, err := range s.All(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, info.Key)
	}
	if want := []string{"inside", "kept"}; !slices.Equal(listed, want) {
		t.Errorf("listed %v, want %v", listed, want)
	}
}

func TestStartSweepsOnlyUnusedFolders(t *testing.T) {
	t.Parallel()
	ctx, root := context.Background(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, scratchPrefix+"DEAD", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, scratchPrefix+"DEAD", "1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := open(t, root)
	for _, content := range []string{"old", "new"} {
		if err := put(t, running, "a", content, storagedrivers.Overwrite); err != nil {
			t.Fatal(err)
		}
	}
	staged, err := running.Stage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Close()
	if _, err := staged.Write([]byte("newest")); err != nil {
		t.Fatal(err)
	}
	if err := open(t, root).Check(ctx); err != nil { // another process starts
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, scratchPrefix+"DEAD")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover is still there: %v", err)
	}
	if _, err := running.Commit(ctx, storagedrivers.Change{Staged: staged, Key: "a", Options: overwrite}); err != nil {
		t.Errorf("the staged object is gone with the sweep: %v", err)
	}
}

func TestCloseLeavesNoFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := storagedrivers.New("test", New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	for range 2 {
		if err := put(t, s, "a", "x", storagedrivers.Overwrite); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(root)
	if err != nil || len(names) != 1 {
		t.Errorf("the root holds %v (%v), want only the object", names, err)
	}
}

func TestRootThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err := put(t, s, "a/b/c", "x", storagedrivers.CreateOnly); err != nil {
		t.Errorf("a root that is missing is not made: %v", err)
	}
}

// TestRootThatIsGone: the backend is unavailable, and no object counts as missing.
func TestRootThatIsGone(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root)
	if err := put(t, s, "a", "x", storagedrivers.CreateOnly); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(context.Background(), "a"); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("stat: %v, want unavailable", err)
	}
	if _, _, err := s.Open(context.Background(), "a", storagedrivers.Range{}); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("open: %v, want unavailable", err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if seen[info.ETag] {
			t.Fatalf("entity tag %s came twice", info.ETag)
		}
		seen[info.ETag] = true
	}
}
