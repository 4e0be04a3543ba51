//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestMapError(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOSPC: storagedrivers.ErrNoSpace, syscall.EDQUOT: storagedrivers.ErrNoSpace,
		syscall.ENAMETOOLONG: storagedrivers.ErrInvalidKey, syscall.ELOOP: storagedrivers.ErrInvalidKey,
		syscall.EROFS: fs.ErrPermission, syscall.EACCES: fs.ErrPermission,
		syscall.ENOENT: fs.ErrNotExist, syscall.EEXIST: fs.ErrExist,
		syscall.ESTALE: storagedrivers.ErrUnavailable, syscall.EMFILE: storagedrivers.ErrUnavailable,
		syscall.EIO: syscall.EIO,
	} {
		got := mapError(&fs.PathError{Op: "open", Path: "x", Err: errno})
		test.Is(t, got, want, errno)
	}
	test.Is(t, mapReadError(&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}), fs.ErrNotExist, "below a file")
	for _, errno := range []syscall.Errno{syscall.ENOTDIR, syscall.EEXIST} {
		got := mapFolderError(&fs.PathError{Op: "mkdir", Path: "x", Err: errno})
		test.Is(t, got, storagedrivers.ErrInvalidKey, errno)
		if errors.Is(got, fs.ErrExist) {
			t.Errorf("%v: a key below a file is also taken", errno)
		}
	}
}

// TestMissingPermission: the cause names the folder and the system user, the error does not.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	d := &Driver{path: "/srv/media"}
	err := d.explained(fmt.Errorf("writing to the root: %w", fs.ErrPermission))
	if cause := string(storagedrivers.CauseOf(err)); !strings.Contains(cause, "/srv/media") || !strings.Contains(cause, "system user ") {
		t.Errorf("the cause is %q", cause)
	}
	if text := err.Error(); strings.Contains(text, "/srv") || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the error is %q", text)
	}
	if err := d.explained(fs.ErrNotExist); storagedrivers.CauseOf(err) != "" {
		t.Errorf("another error has the cause %q", storagedrivers.CauseOf(err))
	}
	if os.Getuid() != 0 { // root may write everywhere
		folder := t.TempDir()
		test.Must(t, os.Chmod(folder, 0o500))
		closed := New(Config{Root: folder}, slog.New(slog.DiscardHandler))
		defer closed.Close()
		if cause := string(storagedrivers.CauseOf(closed.Check(t.Context()))); !strings.Contains(cause, folder) {
			t.Errorf("the cause of a check is %q", cause)
		}
	}
}

func TestWhatIsNoRegularFileIsNoObject(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	test.Must(t, os.Mkdir(filepath.Join(root, "folder"), 0o755))
	test.Must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	s := open(t, root)
	for _, key := range []string{"folder", "pipe"} {
		_, _, err := s.Open(context.Background(), key, storagedrivers.Range{})
		test.Is(t, err, fs.ErrNotExist, "open", key)
	}
}

// TestScratchFolderInUse: a held lock and missing support for locks are different errors.
func TestScratchFolderInUse(t *testing.T) {
	t.Parallel()
	name := t.TempDir()
	first, second := openDir(t, name), openDir(t, name)
	test.Must(t, tryLock(first))
	test.Is(t, tryLock(second), errInUse, "locked twice")
	closed := openDir(t, name)
	closed.Close()
	if err := tryLock(closed); err == nil || errors.Is(err, errInUse) {
		t.Errorf("no lock to be had: %v, want another error than in use", err)
	}
}

func openDir(t *testing.T, name string) *os.File {
	t.Helper()
	dir, err := os.Open(name)
	test.Must(t, err)
	t.Cleanup(func() { dir.Close() })
	return dir
}

// synced is a request that commits one object, or two.
type synced struct {
	*Driver
	t       *testing.T
	changes []storagedrivers.Change
}

var syncedKeys = []string{"a/b/one", "c/two"}

func newSynced(t *testing.T, keys []string) *synced {
	r := &synced{Driver: New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler)), t: t}
	t.Cleanup(func() { r.Close() })
	for _, key := range keys {
		st, err := r.Stage(t.Context())
		test.Must(t, err)
		t.Cleanup(func() { st.Close() })
		test.Must(t, st.(*staged).stamp())
		r.changes = append(r.changes, storagedrivers.Change{Staged: st, Key: key})
	}
	return r
}

// breakFiles replaces the files of all objects by ones that cannot be synced.
func (r *synced) breakFiles() {
	for _, c := range r.changes {
		st := c.Staged.(*staged)
		out, in, err := os.Pipe()
		test.Must(r.t, err)
		test.Must(r.t, errors.Join(out.Close(), st.file.Close()))
		st.file = in
	}
}

// TestSyncs: a commit syncs the file before it has its name and again afterwards, and the folders
// of the name. It fails if it cannot.
func TestSyncs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keys int
		step string // after which the files cannot be synced; empty: they can
	}{
		"one":                  {1, ""},
		"bytes of one":         {1, "staged"},
		"name of one":          {1, "named"},
		"several":              {2, ""},
		"bytes of several":     {2, "recorded"},
		"last name of several": {2, "named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSynced(t, syncedKeys[:tt.keys])
			left := tt.keys
			r.step = func(step string) {
				if step == "named" {
					left--
				}
				if step == tt.step && (step != "named" || left == 0) {
					r.breakFiles()
				}
			}
			r.mark("staged")
			_, err := r.Commit(t.Context(), r.changes)
			if tt.step != "" {
				test.Is(t, err, syscall.EINVAL)
				return
			}
			test.Must(t, err)
			for _, key := range syncedKeys[:tt.keys] {
				if durable, _ := r.current.flush.isDurable(path.Dir(key)); !durable {
					t.Errorf("the folder of %s is not synced", key)
				}
			}
		})
	}
}

// TestEmptyFolderWhileUsed: objects of a key and below it come and go at once. Each is stored, or
// its key is invalid at that moment, or taken if it must be new. Deleting never fails.
func TestEmptyFolderWhileUsed(t *testing.T) {
	t.Parallel()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	d.synced = func(*os.File) error { return nil }
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	var group errgroup.Group
	for _, key := range []string{"a", "a/b", "a/b/c", "a/d/e", "a"} {
		for _, mode := range []storagedrivers.Mode{storagedrivers.CreateOnly, storagedrivers.Overwrite} {
			group.Go(func() error {
				for range 200 {
					err := put(t, s, key, "x", mode)
					invalid, taken := errors.Is(err, storagedrivers.ErrInvalidKey), errors.Is(err, fs.ErrExist)
					if err != nil && (invalid == taken || taken && mode == storagedrivers.Overwrite) {
						return fmt.Errorf("storing %q: %w", key, err)
					}
					if err := s.Delete(t.Context(), key); err != nil {
						return fmt.Errorf("deleting %q: %w", key, err)
					}
				}
				return nil
			})
		}
	}
	test.Must(t, errors.Join(group.Wait(), s.Close()))
}

// TestSyncOfRemovedFolder: the removal of a folder is synced instead of the names that were in it,
// also if an object has its name.
func TestSyncOfRemovedFolder(t *testing.T) {
	t.Parallel()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	defer s.Close()
	test.Must(t, put(t, s, "a/b", "x", storagedrivers.CreateOnly))
	var synced []string
	d.synced = func(file *os.File) error {
		synced = append(synced, path.Base(file.Name()))
		return nil
	}
	for _, name := range []string{"a/gone/c", "a/b/c", "a/b"} {
		synced = nil
		test.Must(t, d.current.syncDir(name, true))
		if !slices.Equal(synced, []string{"a"}) {
			t.Errorf("for %s, %q were synced", name, synced)
		}
	}
	test.Is(t, d.current.syncDir("a/gone", false), fs.ErrNotExist)
	d.step = func(string) { test.Must(t, os.Remove(filepath.Join(d.path, "a"))) }
	synced = nil
	test.Must(t, d.Delete(t.Context(), "a/b", storagedrivers.DeleteOptions{}))
	test.Equal(t, len(synced), 1, "folders synced for a deletion")
	names := openDir(t, d.path)
	synced = nil
	test.Must(t, d.current.syncNames(names, "new/gone"))
	if len(synced) != 2 {
		t.Errorf("a new folder in one that is gone: %q were synced", synced)
	}
}

// TestFolderMadeAgain: the name of a folder that was removed, and made again for another one below
// it, is not known to be on the disk; nor if it was synced before that.
func TestFolderMadeAgain(t *testing.T) {
	t.Parallel()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	d.synced = func(*os.File) error { return nil }
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	defer s.Close()
	test.Must(t, put(t, s, "a/b", "x", storagedrivers.CreateOnly))
	test.Must(t, s.Delete(t.Context(), "a/b"))
	flush := &d.current.flush
	_, forgotten := flush.isDurable("a")
	flush.setDurable([]string{"a"}, forgotten)
	test.Must(t, os.Remove(filepath.Join(d.path, "a")))
	test.Must(t, d.current.makeDir("a/c"))
	if durable, _ := flush.isDurable("a"); durable {
		t.Error("the old name counts for the new folder")
	}
	flush.setDurable([]string{"a"}, forgotten)
	if durable, _ := flush.isDurable("a"); durable {
		t.Error("an earlier sync counts for the new folder")
	}
}

// TestSyncOfNewFolders: a commit syncs the folders that have new names, and none above them.
func TestSyncOfNewFolders(t *testing.T) {
	t.Parallel()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	defer s.Close()
	var synced []string
	d.synced = func(file *os.File) error {
		if stat, err := file.Stat(); err != nil || stat.IsDir() {
			synced = append(synced, path.Base(file.Name()))
		}
		return nil
	}
	for _, tt := range []struct {
		key  string
		want string
	}{
		{"a/b/1/x", "1 b a ."},
		{"a/b/2/x", "2 b"},
		{"a/b/2/y", "2"},
		{"a/c/x", "c a"},
	} {
		synced = nil
		test.Must(t, put(t, s, tt.key, "x", storagedrivers.CreateOnly))
		test.Equal(t, strings.Join(synced, " "), tt.want, "folders synced for "+tt.key)
	}
}
