package sftp

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestNoSpace: a full disk is ErrNoSpace, and the free space is the same after the attempt.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *servers.SSH{
		"OpenSSH": servers.OpenSSH, "ProFTPD": servers.ProFTPDOverSSH,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			small := filepath.Join(server.Folder, "small")
			test.Must(t, os.Mkdir(small, 0o755))
			if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=6m,mode=777"); err != nil {
				t.Skipf("mounting a small disk: %v", err)
			}
			t.Cleanup(func() { test.Is(t, unix.Unmount(small, unix.MNT_DETACH), nil) })
			d := hostOf(t, server).driver(t, "small")
			for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
				_, err := d.Put(t.Context(), "large", bytes.NewReader(test.Random(10<<20)), opts)
				test.Is(t, err, storagedrivers.ErrNoSpace)
				test.IsNot(t, err, storagedrivers.ErrUnavailable)
				if got := test.Files(t, small); len(got) > 0 {
					t.Errorf("the folder has %q", got)
				}
			}
			content := test.Random(4 << 20)
			put(t, d, "fits", content, create)
			has(t, d, "fits", content)
		})
	}
}
