package features_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestFullDisk: on a full disk an upload is answered with 507 and has no leftovers. It works again
// when there is space.
func TestFullDisk(t *testing.T) {
	disk := site.TempFolder(t)
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		site.Skip(t, "no file system of a limited size can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	})
	s := site.Start(t, site.Account+"storage default {\ndriver local "+disk+"\nsub_folder_format /\n}\nfile_alias content", "media")
	half := strings.Repeat("x", 500<<10)
	s.UploadFile(t, site.File("first.txt", half)).One(t)
	for name, parts := range map[string][]site.Part{
		"one":             {site.File("too-large.txt", strings.Repeat("x", 2<<20))},
		"second of two":   {site.File("fits.txt", "x"), site.File("too-large.txt", half+half)},
		"first of two":    {site.File("too-large.txt", half+half), site.File("fits.txt", "x")},
		"both and refuse": {site.File("a.txt", half), site.File("b.txt", half), site.File("x.php", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.UploadFile(t, parts...).Failures(t, http.StatusInsufficientStorage)
			wantNoPath(t, got, disk)
			if left := site.Files(t, disk); len(left) != 1 {
				t.Errorf("%d files remain, want 1", len(left))
			}
		})
	}
	s.UploadFile(t, site.File("fits.txt", "x")).One(t)
	if err := os.Remove(filepath.Join(disk, "file", "content", "first.txt")); err != nil {
		t.Fatal(err)
	}
	s.UploadFile(t, site.File("again.txt", half)).One(t)
}
