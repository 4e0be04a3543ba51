package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk: on a full disk an upload is answered with 507 and has no leftovers. It works again
// when there is space.
func TestFullDisk(t *testing.T) {
	disk := tempFolder(t)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		skip(t, "no file system of a limited size can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	s := startSite(t, account+"storage default {\ndriver local "+disk+"\nsub_folder_format /\n}\nfile_alias content", "media")
	half := strings.Repeat("x", 500<<10)
	s.uploadFile(t, file("first.txt", half)).one(t)
	for name, parts := range map[string][]formPart{
		"one":             {file("too-large.txt", strings.Repeat("x", 2<<20))},
		"second of two":   {file("fits.txt", "x"), file("too-large.txt", half+half)},
		"first of two":    {file("too-large.txt", half+half), file("fits.txt", "x")},
		"both and refuse": {file("a.txt", half), file("b.txt", half), file("x.php", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.uploadFile(t, parts...).failures(t, http.StatusInsufficientStorage)
			wantNoPath(t, got, disk)
			if left := files(t, disk); len(left) != 1 {
				t.Errorf("%d files remain, want 1", len(left))
			}
		})
	}
	s.uploadFile(t, file("fits.txt", "x")).one(t)
	if err := os.Remove(filepath.Join(disk, "file", "content", "first.txt")); err != nil {
		t.Fatal(err)
	}
	s.uploadFile(t, file("again.txt", half)).one(t)
}
