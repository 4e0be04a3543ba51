package local

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// TestReserved: room for a large object is allocated in advance, and released with its commit.
func TestReserved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := New(Config{Root: root, Sync: new(false)}, nil)
	t.Cleanup(func() { must(t, d.Close()) })
	begun, err := d.Stage(t.Context())
	must(t, err)
	object := begun.(*staged)
	t.Cleanup(func() { must(t, object.Close()) })
	piece := bytes.Repeat([]byte("x"), 1<<20+1)
	for range 20 {
		_, err := object.Write(piece)
		must(t, err)
	}
	blocks := func(stat os.FileInfo, err error) int64 {
		t.Helper()
		must(t, err)
		return stat.Sys().(*syscall.Stat_t).Blocks * 512
	}
	size := int64(20 * len(piece))
	if room := blocks(object.file.Stat()); room < size+4<<20 {
		t.Skipf("the file system allocates nothing in advance: %d bytes for %d", room, size)
	}
	infos, err := d.Commit(t.Context(), []storagedrivers.Change{{Staged: object, Key: "large"}})
	must(t, err)
	stored, err := os.ReadFile(root + "/large")
	must(t, err)
	if infos[0].Size != size || !bytes.Equal(stored, bytes.Repeat(piece, 20)) {
		t.Errorf("%d bytes are stored, want %d; the Info has %d", len(stored), size, infos[0].Size)
	}
	if room := blocks(os.Stat(root + "/large")); room > size+64<<10 {
		t.Errorf("the object takes %d bytes of the disk, want about %d", room, size)
	}
}
