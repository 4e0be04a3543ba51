package local

import (
	"os"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
)

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
