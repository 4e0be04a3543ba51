package local

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

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
