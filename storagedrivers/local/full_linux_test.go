package local

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// mountSmall mounts a small disk until the end of the test.
func mountSmall(t *testing.T, root, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, options); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { test.Must(t, syscall.Unmount(root, syscall.MNT_DETACH)) })
}

// TestAppendNoSpace: the counted bytes of a writer on a full disk stay, and the writer goes on when
// there is space.
func TestAppendNoSpace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	mountSmall(t, root, "size=1m")
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { test.Must(t, d.Close()) })
	full := filepath.Join(root, "full")
	test.Must(t, os.WriteFile(full, make([]byte, 512<<10), 0o600))
	w, err := d.Append(t.Context(), "f/object", 0)
	test.Must(t, err)
	n, err := w.Write(grown(0, 768<<10))
	if !errors.Is(err, storagedrivers.ErrNoSpace) || n == 0 {
		t.Fatalf("wrote %d bytes, %v, want a part", n, err)
	}
	test.Must(t, os.Remove(full))
	_, err = w.Write(grown(int64(n), 768<<10-int64(n)))
	test.Must(t, err)
	test.Must(t, errors.Join(w.Flush(t.Context()), w.Close()))
	got, err := os.ReadFile(filepath.Join(root, "f/object"))
	if err != nil || string(got) != string(grown(0, 768<<10)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestMountedOver: a disk that is mounted over the root is used at once, even if it is empty. After
// the disk is unmounted, the empty mount point is not used as the storage.
func TestMountedOver(t *testing.T) {
	t.Parallel()
	f := follow(t)
	mount := func() {
		t.Helper()
		if err := syscall.Mount("tmpfs", f.root, "tmpfs", 0, "size=1m"); err != nil {
			t.Skipf("mounting: %v", err)
		}
	}
	unmount := func() { test.Must(t, syscall.Unmount(f.root, syscall.MNT_DETACH)) }

	mount()
	defer syscall.Unmount(f.root, syscall.MNT_DETACH)
	f.mustPut(t, "second")
	wantFiles(t, f.root, "second")
	unmount()
	wantFiles(t, f.root, "first")
	f.mustPut(t, "third")
	wantFiles(t, f.root, "first", "third")

	test.Must(t, os.Remove(f.root+"/first"))
	test.Must(t, os.Remove(f.root+"/third"))
	mount()
	f.mustPut(t, "fourth")
	unmount()
	f.wantUnavailable(t)
	wantFiles(t, f.root)
	test.Must(t, os.WriteFile(f.root+"/fifth", nil, 0o600)) // an administrator means this folder
	f.mustPut(t, "sixth")
}

// TestOpenFileBeneath: links are followed inside the root only, and a named pipe blocks nothing.
// os.Root decides about the others.
func TestOpenFileBeneath(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	test.Must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	test.Must(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	test.Must(t, os.WriteFile(filepath.Join(root, "a", "file"), nil, 0o600))
	test.Must(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	for name, target := range map[string]string{
		"inside": "a/file", "a/b/up": "../file", "folder": "a",
		"out": filepath.Join(outside, "secret"), "absolute": filepath.Join(root, "a", "file"), "above": "..",
		"magic": "/proc/self/root",
	} {
		test.Must(t, os.Symlink(target, filepath.Join(root, name)))
	}
	dir, err := os.Open(root)
	test.Must(t, err)
	defer dir.Close()
	probe, ok := openFileBeneath(dir, "a/file")
	if !ok {
		t.Skip("no openat2 here")
	}
	test.Must(t, probe.Close())
	for name, want := range map[string]bool{
		"a/file": true, "inside": true, "a/b/up": true, "folder/file": true, "pipe": true,
		"out": false, "absolute": false, "above/x": false, "magic/etc/passwd": false, "missing": false,
	} {
		file, ok := openFileBeneath(dir, name)
		test.Equal(t, ok, want, name, "is opened:")
		if ok {
			test.Must(t, file.Close())
		}
	}
}

// TestReadFileClosed: a closed file reads nothing of what has its descriptor then, also if the
// kernel was to send it.
func TestReadFileClosed(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*reader){
		"read":          func(r *reader) { _, _ = r.ReadAt(make([]byte, 4), 0) },
		"sent":          func(r *reader) { _, _ = r.File() },
		"sent too late": func(*reader) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openReader(t, t.TempDir())
			use(r)
			test.Must(t, r.Close())
			n, err := r.ReadAt(make([]byte, 4), 0)
			test.Equal(t, n, 0)
			test.Is(t, err, fs.ErrClosed)
			test.Is(t, r.Close(), fs.ErrClosed, "closing it again")
			_, err = r.File()
			test.Is(t, err, fs.ErrClosed, "sending it")
		})
	}
}

// TestRemoveNoSpace: several objects can be removed together from a disk without space for a
// record, in the given order.
func TestRemoveNoSpace(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"blocks": "size=256k", "inodes": "size=1m,nr_inodes=40"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			mountSmall(t, root, options)
			s := open(t, root)
			keys := []string{"a.webp", "a", "folder/b.webp", "folder/b"}
			for _, key := range keys {
				test.Must(t, put(t, s, key, "content", storagedrivers.CreateOnly))
			}
			fill(t, root)
			for i := range 2 {
				_, err := s.Commit(t.Context(), storagedrivers.Change{Key: keys[2*i]}, storagedrivers.Change{Key: keys[2*i+1]})
				test.Must(t, err)
			}
			for _, key := range keys {
				_, err := s.Stat(t.Context(), key)
				test.Is(t, err, fs.ErrNotExist, key)
			}
		})
	}
}

// fill fills a disk with files.
func fill(t *testing.T, root string) {
	t.Helper()
	for i := 0; ; i++ {
		err := os.WriteFile(filepath.Join(root, "full"+strconv.Itoa(i)), make([]byte, 4<<10), 0o600)
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		test.Must(t, err)
	}
}

// TestReserved: room for a large object is allocated in advance, and released with its commit.
func TestReserved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := New(Config{Root: root, Sync: new(false)}, nil)
	t.Cleanup(func() { test.Must(t, d.Close()) })
	begun, err := d.Stage(t.Context())
	test.Must(t, err)
	object := begun.(*staged)
	t.Cleanup(func() { test.Must(t, object.Close()) })
	piece := bytes.Repeat([]byte("x"), 1<<20+1)
	for range 20 {
		_, err := object.Write(piece)
		test.Must(t, err)
	}
	blocks := func(stat os.FileInfo, err error) int64 {
		t.Helper()
		test.Must(t, err)
		return stat.Sys().(*syscall.Stat_t).Blocks * 512
	}
	size := int64(20 * len(piece))
	if room := blocks(object.file.Stat()); room < size+4<<20 {
		t.Skipf("the file system allocates nothing in advance: %d bytes for %d", room, size)
	}
	infos, err := d.Commit(t.Context(), []storagedrivers.Change{{Staged: object, Key: "large"}})
	test.Must(t, err)
	stored, err := os.ReadFile(root + "/large")
	test.Must(t, err)
	if infos[0].Size != size || !bytes.Equal(stored, bytes.Repeat(piece, 20)) {
		t.Errorf("%d bytes are stored, want %d; the Info has %d", len(stored), size, infos[0].Size)
	}
	if room := blocks(os.Stat(root + "/large")); room > size+64<<10 {
		t.Errorf("the object takes %d bytes of the disk, want about %d", room, size)
	}
}
