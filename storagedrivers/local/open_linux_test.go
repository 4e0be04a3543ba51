package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenFileBeneath: links are followed inside the root only, and a named pipe blocks nothing.
// os.Root decides about the others.
func TestOpenFileBeneath(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "a", "file"), nil, 0o600))
	must(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	for name, target := range map[string]string{
		"inside": "a/file", "a/b/up": "../file", "folder": "a",
		"out": filepath.Join(outside, "secret"), "absolute": filepath.Join(root, "a", "file"), "above": "..",
		"magic": "/proc/self/root",
	} {
		must(t, os.Symlink(target, filepath.Join(root, name)))
	}
	dir, err := os.Open(root)
	must(t, err)
	defer dir.Close()
	probe, ok := openFileBeneath(dir, "a/file")
	if !ok {
		t.Skip("no openat2 here")
	}
	must(t, probe.Close())
	for name, want := range map[string]bool{
		"a/file": true, "inside": true, "a/b/up": true, "folder/file": true, "pipe": true,
		"out": false, "absolute": false, "above/x": false, "magic/etc/passwd": false, "missing": false,
	} {
		file, ok := openFileBeneath(dir, name)
		if ok != want {
			t.Errorf("%q: opened %t, want %t", name, ok, want)
		}
		if ok {
			must(t, file.Close())
		}
	}
}

// TestReadFileClosed: a closed file reads nothing of what has its descriptor then, also if the kernel was
// to send it.
func TestReadFileClosed(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*reader){
		"read": func(r *reader) { _, _ = r.ReadAt(make([]byte, 4), 0) },
		"sent": func(r *reader) { _, _ = r.File() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openReader(t, t.TempDir())
			use(r)
			must(t, r.Close())
			if n, err := r.ReadAt(make([]byte, 4), 0); n != 0 || !errors.Is(err, fs.ErrClosed) {
				t.Errorf("read %d bytes, error %v, want that it is closed", n, err)
			}
			if err := r.Close(); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("closing it again: %v, want that it is closed", err)
			}
		})
	}
}
