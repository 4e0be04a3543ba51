package local

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/internal/test"
)

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
	if probe := openFileBeneath(dir, "a/file"); probe == nil {
		t.Skip("no openat2 here")
	} else {
		test.Must(t, probe.Close())
	}
	for name, want := range map[string]bool{
		"a/file": true, "inside": true, "a/b/up": true, "folder/file": true, "pipe": true,
		"out": false, "absolute": false, "above/x": false, "magic/etc/passwd": false, "missing": false,
	} {
		file := openFileBeneath(dir, name)
		if (file != nil) != want {
			t.Errorf("%q: opened %t, want %t", name, file != nil, want)
		}
		if file != nil {
			test.Must(t, file.Close())
		}
	}
}
